//! What GDAL says of the bands of a TIFF, in its tag `GDAL_METADATA`: scale and offset from stored to physical values,
//! their unit, the band's name, and the colour it shows.

use roxmltree::{Document, Node};

/// `GDAL_METADATA`.
pub(super) const TAG: u16 = 42112;

/// The roles of items that also hold for other pixels of the same bands, and the elements for them in GDAL's other files.
const ROLES: [(&str, &str); 5] = [
    ("scale", "Scale"),
    ("offset", "Offset"),
    ("unittype", "UnitType"),
    ("description", "Description"),
    ("colorinterp", "ColorInterp"),
];

/// The text of a tag with only the items that results keep; `None` if it has none of them, or is not XML.
pub(super) fn kept(text: &str) -> Option<String> {
    let document = Document::parse(text.trim_end_matches('\0')).ok()?;
    let items = document.root_element().children().filter_map(|item| {
        let role = item.attribute("role").filter(|role| ROLES.iter().any(|(known, _)| known == role))?;
        let (name, sample): (_, u32) = (item.attribute("name")?, item.attribute("sample")?.parse().ok()?);
        // Results have no colour table.
        if (role, item.text()?) == ("colorinterp", "Palette") {
            return None;
        }
        let [name, value] = [name, item.text()?].map(escaped);
        Some(format!("<Item name=\"{name}\" sample=\"{sample}\" role=\"{role}\">{value}</Item>"))
    });
    of_items(items)
}

fn of_items(items: impl Iterator<Item = String>) -> Option<String> {
    let items: String = items.collect();
    (!items.is_empty()).then(|| format!("<GDALMetadata>{items}</GDALMetadata>"))
}

/// The same of GDAL's `FILE.aux.xml`, without colours.
pub(in crate::image) fn of_elements(root: Node<'_, '_>) -> Option<String> {
    let bands = root.children().filter(|band| band.has_tag_name("PAMRasterBand"));
    let items = bands.flat_map(|band| {
        let sample = band.attribute("band").and_then(|number| number.parse::<u32>().ok()?.checked_sub(1));
        ROLES[..4].iter().filter_map(move |(role, name)| {
            let value = band.children().find(|child| child.has_tag_name(*name))?.text()?;
            let (sample, value, name) = (sample?, escaped(&escaped(value)), role.to_uppercase());
            Some(format!("<Item name=\"{name}\" sample=\"{sample}\" role=\"{role}\">{value}</Item>"))
        })
    });
    of_items(items)
}

/// The items of a band, counted from 0, as elements of a GDAL virtual raster.
pub(crate) fn elements(kept: &str, band: usize) -> String {
    let Ok(document) = Document::parse(kept) else { return String::new() };
    let element = |item: Node<'_, '_>| {
        item.attribute("sample").filter(|sample| *sample == band.to_string())?;
        let role = item.attribute("role")?;
        let (_, name) = ROLES.iter().find(|(known, _)| *known == role)?;
        // GDAL escapes the text of an item twice.
        Some(format!("<{name}>{}</{name}>", escaped(&unescaped(item.text()?))))
    };
    document.root_element().children().filter_map(element).collect()
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_bands_are_kept_and_others_left_out() {
        let item = |attributes: &str, value: &str| format!("<Item {attributes}>{value}</Item>");
        let scale = item("name=\"SCALE\" sample=\"0\" role=\"scale\"", "0.01");
        let name = item("name=\"DESCRIPTION\" sample=\"1\" role=\"description\"", "a &lt; b &amp; c");
        let palette = item("name=\"COLORINTERP\" sample=\"0\" role=\"colorinterp\"", "Palette");
        assert_eq!(kept(&format!("<GDALMetadata>{palette}</GDALMetadata>")), None, "there is no table");
        let colour = item("name=\"COLORINTERP\" sample=\"1\" role=\"colorinterp\"", "Blue");
        let other = item("name=\"STATISTICS_MEAN\" sample=\"0\"", "7") + &item("name=\"AUTHOR\"", "me");
        let of = |items: &str| format!("<GDALMetadata>{items}</GDALMetadata>");
        assert_eq!(
            kept(&(of(&format!("{other}{scale}\n  {name}{colour}")) + "\0")),
            Some(of(&format!("{scale}{name}{colour}")))
        );
        assert_eq!(elements(&of(&format!("{scale}{name}")), 0), "<Scale>0.01</Scale>");
        assert_eq!(elements(&of(&name), 1), "<Description>a &lt; b &amp; c</Description>");
        assert_eq!(elements(&of(&colour), 1), "<ColorInterp>Blue</ColorInterp>");
        let twice =
            item("name=\"DESCRIPTION\" sample=\"1\" role=\"description\"", "a &amp;lt; b &amp;amp; c");
        assert_eq!(elements(&of(&twice), 1), elements(&of(&name), 1), "as GDAL writes it");
        assert_eq!(kept(&of(&other)), None);
        assert_eq!(kept("<GDALMetadata><Item"), None);
    }
}
