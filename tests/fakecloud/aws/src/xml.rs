//! A writer for the XML of the query protocols.

/// An XML document under construction; text is escaped, names are ours.
#[derive(Debug)]
pub(crate) struct Xml {
    out: String,
}

impl Xml {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let mut out = String::with_capacity(capacity);
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        Self { out }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// `<name>…</name>` around what `inside` writes.
    pub(crate) fn tag(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.open(name);
        inside(self);
        self.close(name);
    }

    /// The outermost element, with its namespace.
    pub(crate) fn root(&mut self, name: &str, namespace: &str, inside: impl FnOnce(&mut Self)) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push_str(" xmlns=\"");
        self.escaped(namespace);
        self.out.push_str("\">");
        inside(self);
        self.close(name);
    }

    /// `<name>text</name>`, escaped.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        self.escaped(text);
        self.close(name);
    }

    /// An element only where there is a value.
    pub(crate) fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// An element with a number, a boolean or anything else that needs no escape.
    pub(crate) fn value(&mut self, name: &str, value: impl std::fmt::Display) {
        use std::fmt::Write as _;
        self.open(name);
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{value}");
        self.close(name);
    }

    /// A list with one `<item>` for each of `items`.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T),
    ) {
        self.tag(name, |xml| {
            for one in items {
                xml.tag("item", |xml| item(xml, one));
            }
        });
    }

    /// A list of plain words.
    pub(crate) fn words<'a>(&mut self, name: &str, words: impl IntoIterator<Item = &'a str>) {
        self.tag(name, |xml| {
            for word in words {
                xml.text("item", word);
            }
        });
    }

    fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn escaped(&mut self, text: &str) {
        let mut rest = text;
        while let Some((index, escape)) = first_escape(rest) {
            let (plain, special) = rest.split_at(index);
            self.out.push_str(plain);
            self.out.push_str(escape);
            rest = special.get(1..).unwrap_or_default();
        }
        self.out.push_str(rest);
    }
}

/// The first byte that must be escaped, and what stands for it.
fn first_escape(text: &str) -> Option<(usize, &'static str)> {
    text.bytes().enumerate().find_map(|(index, byte)| {
        let escape = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            // A parser would turn a bare carriage return into a line feed.
            b'\r' => "&#xD;",
            // XML 1.0 has no way to carry the other control characters.
            0..=8 | 11 | 12 | 14..=31 => "\u{fffd}",
            _ => return None,
        };
        Some((index, escape))
    })
}

#[cfg(test)]
mod tests {
    use super::Xml;

    #[test]
    fn text_is_escaped_and_structure_is_kept() {
        let mut xml = Xml::with_capacity(0);
        xml.root("R", "http://n/", |xml| {
            xml.text("a", "<script>\"x\" & 'y'</script>\r\n\u{1}训练");
            xml.list("set", [1, 2], |xml, n| xml.value("n", n));
            xml.words("w", ["x"]);
            xml.optional("none", None);
        });
        assert_eq!(
            xml.finish(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<R xmlns=\"http://n/\">\
             <a>&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;&lt;/script&gt;&#xD;\n\u{fffd}训练</a>\
             <set><item><n>1</n></item><item><n>2</n></item></set><w><item>x</item></w></R>"
        );
    }
}
