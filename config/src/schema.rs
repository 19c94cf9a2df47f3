//! The JSON schema, for editors and for checks before deployment.

use schemars::{
    Schema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Map, Value, json};

use crate::Config;

/// Name of the definition of a value that refers to the environment.
const REFERENCE: &str = "Reference";

/// The JSON schema (draft 2020-12) of the configuration file.
#[must_use]
pub fn schema_json() -> String {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Config>();
    AllowReferences.transform(&mut schema);
    schema.insert("title".to_owned(), json!("gpuwatch.yaml"));
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.insert(
            REFERENCE.to_owned(),
            json!({
                "type": "string",
                "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}",
                "description": "A value from the environment: ${NAME} or ${NAME:-default}.",
            }),
        );
    }
    format!("{:#}\n", schema.as_value())
}

/// Lets `${NAME}` stand wherever a number, a word or a text of a certain form
/// is expected: the program expands references before it looks at the type.
#[derive(Clone)]
struct AllowReferences;

impl Transform for AllowReferences {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        let reference = json!({ "$ref": format!("#/$defs/{REFERENCE}") });
        if let Some(Value::Array(choices)) = object.get_mut("oneOf") {
            // A list of words, each with its description.
            choices.push(reference);
        } else if is_restricted(object) {
            let mut inner = Map::new();
            for key in [
                "type",
                "pattern",
                "enum",
                "format",
                "minimum",
                "maximum",
                "exclusiveMinimum",
            ] {
                if let Some(value) = object.remove(key) {
                    inner.insert(key.to_owned(), value);
                }
            }
            object.insert("anyOf".to_owned(), json!([inner, reference]));
        }
    }
}

fn is_restricted(object: &Map<String, Value>) -> bool {
    let is_number = |word: &str| matches!(word, "integer" | "number" | "boolean");
    let has_number_type = match object.get("type") {
        Some(Value::String(word)) => is_number(word),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).any(is_number),
        _ => false,
    };
    has_number_type || object.contains_key("pattern") || object.contains_key("enum")
}
