//! Pieces of HTML.

use std::fmt::Write;

/// A text as it stands between tags and in attributes.
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

/// A section with a heading, a sentence on how to read it, and what it shows.
pub fn section(id: &str, heading: &str, how: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\"><h2>{}</h2><p class=\"how\">{}</p>{content}</section>\n",
        escaped(heading),
        escaped(how)
    )
}

/// A table that can be sorted by its columns; the first `left` of them hold words. Cells are HTML where they begin with `<`.
pub fn table(header: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
    let class = |column: usize| if column < left { "" } else { " class=\"number\"" };
    for (column, name) in header.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(column), escaped(name));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = if cell.starts_with('<') { cell.clone() } else { escaped(cell) };
            let _ = write!(html, "<td{}>{cell}</td>", class(column));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// A bar of parts, each with its class, its share of the bar from 0 to 1, and what is said of it.
pub fn bar(parts: &[(&str, f64, String)]) -> String {
    let mut html = String::from("<div class=\"bar\">");
    for (class, share, title) in parts {
        let width = (share * 100.0).clamp(0.0, 100.0);
        let _ = write!(
            html,
            "<i class=\"{class}\" style=\"width:{width:.2}%\" title=\"{}\"></i>",
            escaped(title)
        );
    }
    html.push_str("</div>");
    html
}
