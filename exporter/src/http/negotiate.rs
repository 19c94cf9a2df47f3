//! Which encoding of the page a client takes.

use http::{HeaderMap, header::ACCEPT_ENCODING};

/// Whether the request's `Accept-Encoding` takes gzip, by RFC 9110: the
/// weight of `gzip` (or else of `*`) is above 0 and not below that of
/// `identity`, where the client states the latter.
#[must_use]
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let mut gzip = None;
    let mut any = None;
    let mut identity = None;
    let values = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    for item in values.flat_map(|value| value.split(',')) {
        let mut parameters = item.split(';');
        let coding = parameters.next().unwrap_or_default().trim();
        let weight = weight(parameters);
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
            gzip = Some(weight);
        } else if coding == "*" {
            any = Some(weight);
        } else if coding.eq_ignore_ascii_case("identity") {
            identity = Some(weight);
        }
    }
    let gzip = gzip.or(any).unwrap_or(0.0);
    gzip > 0.0 && gzip >= identity.unwrap_or(0.0)
}

/// The `q` among an item's parameters; 1 without one, 0 when it makes no sense.
fn weight<'a>(parameters: impl Iterator<Item = &'a str>) -> f32 {
    for parameter in parameters {
        if let Some((name, value)) = parameter.split_once('=')
            && name.trim().eq_ignore_ascii_case("q")
        {
            return value
                .trim()
                .parse::<f32>()
                .ok()
                .filter(|q| (0.0..=1.0).contains(q))
                .unwrap_or(0.0);
        }
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, value.parse().expect("header value"));
        takes_gzip(&headers)
    }

    #[test]
    fn weights_decide() {
        for yes in [
            "gzip",
            "GZIP",
            "gzip;q=1.0",
            "deflate, gzip;q=0.5",
            "*",
            "br, *;q=0.1",
            "gzip, identity",
            "gzip;Q=0.3",
        ] {
            assert!(takes(yes), "{yes}");
        }
        for no in [
            "",
            "identity",
            "gzip;q=0",
            "gzip;q=0.000, *",
            "*;q=0",
            "br",
            "gzip;q=x",
            "gzip;q=0.2, identity;q=0.9",
        ] {
            assert!(!takes(no), "{no}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn several_header_lines_count_as_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT_ENCODING, "br".parse().expect("header value"));
        headers.append(ACCEPT_ENCODING, "gzip".parse().expect("header value"));
        assert!(takes_gzip(&headers));
    }
}
