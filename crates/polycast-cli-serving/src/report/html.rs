//! Pieces of HTML.

use std::fmt::Write;

/// Escapes a text for HTML, between tags and in attributes.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Writes a section: a heading, a sentence on how to read it, and its content.
pub fn section(id: &str, heading: &str, how: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\"><h2>{}</h2><p class=\"how\">{}</p>{content}</section>\n",
        escaped(heading),
        escaped(how)
    )
}

/// A cell of a table.
pub struct Cell {
    html: String,
    /// The number by which the column is sorted, if the text does not tell.
    worth: Option<f64>,
}

/// A cell of escaped text: most texts come from files of others, and might look like HTML.
impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { html: escaped(&text), worth: None }
    }
}

/// A table that can be sorted by its columns; the first `left` of them hold words.
pub fn table(header: &[&str], rows: Vec<Vec<Cell>>, left: usize) -> String {
    let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
    let class = |column: usize| if column < left { "" } else { " class=\"number\"" };
    for (column, name) in header.iter().enumerate() {
        let (class, name) = (class(column), escaped(name));
        let _ = write!(html, "<th scope=\"col\"{class}><button type=\"button\">{name}</button></th>");
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (column, Cell { html: content, worth }) in row.iter().enumerate() {
            let worth = worth.map_or_else(String::new, |worth| format!(" data-worth=\"{worth:.6}\""));
            let _ = write!(html, "<td{}{worth}>{content}</td>", class(column));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// Makes a bar of parts, each with its class, its share of the bar from 0 to 1, and its words. The
/// column is sorted by the sum of the shares.
pub fn bar(parts: &[(&str, f64, String)]) -> Cell {
    let said: Vec<&str> = parts.iter().map(|(_, _, said)| &said[..]).collect();
    let mut html = format!("<div class=\"bar\" role=\"img\" aria-label=\"{}\">", escaped(&said.join(", ")));
    for (class, share, said) in parts {
        let width = (share * 100.0).clamp(0.0, 100.0);
        let _ =
            write!(html, "<i class=\"{class}\" style=\"width:{width:.2}%\" title=\"{}\"></i>", escaped(said));
    }
    html.push_str("</div>");
    Cell { html, worth: Some(parts.iter().map(|(_, share, _)| share).sum()) }
}

/// Writes the key to the bars: for each part its class in the style sheet, and its words.
pub fn key(parts: &[(&str, &str)]) -> String {
    let one =
        |(class, said): &(&str, &str)| format!("<span><i class=\"{class}\"></i>{}</span>", escaped(said));
    format!("<p class=\"key\">{}</p>", parts.iter().map(one).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_cell_stays_text() {
        let cell = |text: &str| Cell::from(text.to_owned());
        let html =
            table(&["a <b>"], vec![vec![cell("<img src=x onerror=alert(1)>")], vec![cell("a & b")]], 1);
        for text in ["a &lt;b&gt;", "<td>&lt;img src=x onerror=alert(1)&gt;</td>", "<td>a &amp; b</td>"] {
            assert!(html.contains(text), "{text}: {html}");
        }
    }

    #[test]
    fn a_bar_is_said_and_sorted_by_its_length() {
        let parts = [("wait", 0.25, "1 \"ms\" waiting".to_owned()), ("work", 0.5, "the rest".to_owned())];
        let html = table(&["share"], vec![vec![bar(&parts)]], 0);
        for text in
            ["aria-label=\"1 &quot;ms&quot; waiting, the rest\"", "data-worth=\"0.750000\"", "width:25.00%"]
        {
            assert!(html.contains(text), "{text}: {html}");
        }
    }
}
