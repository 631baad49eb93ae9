//! The figures of two runs beside each other.

use serde_json::Value;
use std::collections::HashMap;

/// All figures by their path. The reasons of a verdict give each number by its measure; other lists are left out.
pub(super) fn flat(figures: &Value) -> Vec<(String, Value)> {
    fn add(out: &mut Vec<(String, Value)>, path: &str, value: &Value) {
        let under = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| add(out, &under(key), value)),
            Value::Array(list) => {
                for reason in list {
                    if let Some(measure) = reason["measure"].as_str() {
                        out.push((under(measure), reason["value"].clone()));
                    }
                }
            }
            Value::Null => {}
            other => out.push((path.to_owned(), other.clone())),
        }
    }
    let mut out = vec![];
    add(&mut out, "", figures);
    out
}

/// A row for each figure, those that differ first.
pub(super) fn rows(before: &[(String, Value)], after: &[(String, Value)]) -> Vec<Vec<String>> {
    let [old, new] =
        [before, after].map(|run| run.iter().map(|(k, v)| (k.as_str(), v)).collect::<HashMap<_, _>>());
    let mut keys: Vec<&str> = after.iter().map(|(key, _)| key.as_str()).collect();
    keys.extend(before.iter().map(|(key, _)| key.as_str()).filter(|key| !new.contains_key(key)));
    let text = |value: Option<&&Value>| match value {
        None => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(n)) => n.as_f64().map_or_else(|| n.to_string(), number),
        Some(value) => value.to_string(),
    };
    let rows = keys.into_iter().map(|key| {
        let (p, q) = (old.get(key), new.get(key));
        let change = match (p.and_then(|v| v.as_f64()), q.and_then(|v| v.as_f64())) {
            _ if p == q => "=".to_owned(),
            (Some(p), Some(q)) => format!("{}{}", if q > p { "+" } else { "" }, number(q - p)),
            _ => String::new(),
        };
        vec![key.to_owned(), text(p), text(q), change]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    rows.sort_by_key(|row| row[3] == "=");
    rows
}

/// A number with about four digits.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let decimals = (3 - libm::log10(value.abs()).floor() as i32).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_compared_by_their_path() {
        let [a, b] = [
            json!({ "model": "homography", "rms_px": 0.5, "device": "cpu", "matrix": [1, 2], "reasons": [{ "measure": "chance", "value": 0.1 }] }),
            json!({ "model": "affine", "rms_px": 0.75, "device": "cpu", "reasons": [{ "measure": "chance", "value": 0.3 }], "new": 1 }),
        ];
        let expected = [
            ["model", "homography", "affine", ""],
            ["rms_px", "0.5000", "0.7500", "+0.2500"],
            ["reasons.chance", "0.1000", "0.3000", "+0.2000"],
            ["new", "–", "1", ""],
            ["device", "cpu", "cpu", "="],
        ];
        let mut found = rows(&flat(&a), &flat(&b));
        let place = |row: &Vec<String>| expected.iter().position(|other| other[0] == row[0]);
        assert_eq!(found.last().unwrap()[0], "device", "what is equal comes last");
        found.sort_by_key(place);
        assert_eq!(found, expected, "lists are left out");
    }
}
