//! The JSON that OpenCV's `FileStorage` writes: an object of numbers and of matrices, `{"type_id": "opencv-matrix", "rows":
//! …, "cols": …, "dt": "d", "data": [ … ]}`. A list of numbers is a row, a list of such rows a matrix. Anything else is
//! stepped over.

use super::document::{Entry, Matrix, Parsed, Value};
use serde_json::Value as Json;

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let entries: serde_json::Map<String, Json> =
        serde_json::from_str(text).map_err(|e| format!("JSON: {e}"))?;
    // serde_json tells no lines; keys do.
    entries.into_iter().map(|(key, json)| Ok(Entry { value: value(&key, &json)?, key, line: 1 })).collect()
}

fn value(key: &str, json: &Json) -> Parsed<Value> {
    let matrix = match json {
        Json::Number(number) => return Ok(number.as_f64().map_or(Value::Other, Value::Number)),
        Json::Array(rows) => nested(rows),
        Json::Object(parts) if parts.contains_key("rows") && parts.contains_key("data") => {
            let count = |part| parts.get(part).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
            let data = parts.get("data").and_then(Json::as_array).and_then(|data| numbers(data));
            let found = count("rows").zip(count("cols")).zip(data);
            let found =
                found.filter(|((rows, cols), data)| rows.checked_mul(*cols) == Some(data.len()) && *rows > 0);
            let ((rows, columns), data) = found
                .ok_or_else(|| format!("{key} is no matrix: rows, cols and data do not fit each other"))?;
            Some(Matrix { rows, columns, data })
        }
        _ => None,
    };
    Ok(matrix.map_or(Value::Other, Value::Matrix))
}

fn nested(rows: &[Json]) -> Option<Matrix> {
    if let Some(data) = numbers(rows) {
        return (!data.is_empty()).then_some(Matrix { rows: 1, columns: data.len(), data });
    }
    let rows: Vec<Vec<f64>> = rows.iter().map(|row| numbers(row.as_array()?)).collect::<Option<_>>()?;
    let columns = rows.first()?.len();
    let even = columns > 0 && rows.iter().all(|row| row.len() == columns);
    even.then(|| Matrix { rows: rows.len(), columns, data: rows.concat() })
}

fn numbers(data: &[Json]) -> Option<Vec<f64>> {
    data.iter().map(Json::as_f64).collect()
}
