//! The JSON objects of `--json`. Keys keep the order in which they are written; infinity and NaN become null.

use serde_json::{Map, Value};

/// One object with all keys of `parts`, in order.
pub(crate) fn joined(parts: impl IntoIterator<Item = Value>) -> Value {
    let keys = |part| match part {
        Value::Object(keys) => keys,
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    Value::Object(parts.into_iter().flat_map(keys).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_keep_their_order() {
        let seconds = json!({ "total": 0.5, "read": f64::INFINITY });
        let object =
            joined([json!({ "image": "a \"b\"\\\n.png" }), json!({ "n": 3, "m": [0.1, -2.5] }), seconds]);
        let expected = r#"{"image":"a \"b\"\\\n.png","n":3,"m":[0.1,-2.5],"total":0.5,"read":null}"#;
        assert_eq!(object.to_string(), expected, "in order, text escaped, no infinity");
    }
}
