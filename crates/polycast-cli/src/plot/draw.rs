use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Ticked;
use super::{Chart, Curve, Look, PlotError, Point};

const WIDTH: u32 = 960;
const HEIGHT: u32 = 540;
const FONT: &str = "sans-serif";
const FONT_SIZE: u32 = 14;
/// A generous mean width of a character, since the font is known to whoever looks at the file only.
const CHARACTER_WIDTH: u32 = 8;
const LEGEND_LINE: i32 = 22;
const LEGEND_SAMPLE: i32 = 28;

/// Okabe and Ito's colours without their yellow, which is too light for lines on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
const GREY: RGBColor = RGBColor(110, 110, 110);

/// Outlines of marks around their middle. Their number and that of the colours have no common factor, so that 35 curves
/// differ.
const MARKS: [&[(i32, i32)]; 5] = [
    &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -5), (5, 0), (0, 5), (-5, 0)],
    &[(-5, -4), (5, -4), (0, 5)],
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticked, Ticked>>;

/// Draws a chart whose points are on its axes, at least one of them.
pub(super) fn svg(chart: &Chart) -> Result<String, PlotError> {
    let mut document = String::new();
    draw(chart, &mut document)
        .map_err(|error| PlotError::Drawing { title: chart.title.clone(), problem: error.to_string() })?;
    Ok(document)
}

fn draw<'a>(chart: &Chart, document: &'a mut String) -> Result<(), Failure<'a>> {
    let area = SVGBackend::with_string(document, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, legend) = area.split_horizontally(WIDTH - legend_width(chart));
    let points = || chart.curves.iter().flat_map(|curve| &curve.points);
    let x = chart.x.around(points().map(|point| point.x));
    let y = chart.y.around(points().flat_map(Point::heights));
    let (x_ticks, y_ticks, y_labels) = (x.len(), y.len(), y.label_width() as u32);
    let mut context = ChartBuilder::on(&plot)
        .caption(&chart.title, (FONT, FONT_SIZE + 4))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(y_labels * CHARACTER_WIDTH + 36)
        .build_cartesian_2d(x, y)?;
    context
        .configure_mesh()
        .x_labels(x_ticks)
        .y_labels(y_ticks)
        .bold_line_style(BLACK.mix(0.12))
        .label_style((FONT, FONT_SIZE))
        .axis_desc_style((FONT, FONT_SIZE))
        .x_desc(chart.x.label())
        .y_desc(chart.y.label())
        .draw()?;
    for (index, curve) in chart.curves.iter().enumerate() {
        draw_curve(&mut context, curve, index)?;
    }
    draw_legend(&legend, &chart.curves)?;
    area.present()
}

fn colour(curve: &Curve, index: usize) -> RGBColor {
    if curve.look == Look::Reference { GREY } else { COLOURS[index % COLOURS.len()] }
}

fn draw_curve<'b>(context: &mut Context<'_, 'b>, curve: &Curve, index: usize) -> Result<(), Failure<'b>> {
    let colour = colour(curve, index);
    let points = || curve.points.iter().map(|point| (point.x, point.y));
    let line = colour.stroke_width(2);
    if curve.look == Look::Reference {
        let points: Vec<_> = points().collect();
        context.draw_series(DashedLineSeries::new(points, 7, 5, line))?;
        return Ok(());
    }
    if curve.look == Look::Measured {
        context.draw_series(LineSeries::new(points(), line))?;
    }
    let bars = curve.points.iter().filter_map(|point| point.interval.map(|interval| (point, interval)));
    let bars =
        bars.map(|(point, (low, high))| ErrorBar::new_vertical(point.x, low, point.y, high, colour, 8));
    context.draw_series(bars)?;
    let mark = MARKS[index % MARKS.len()];
    context.draw_series(points().map(|at| EmptyElement::at(at) + Polygon::new(mark, colour.filled())))?;
    Ok(())
}

fn legend_width(chart: &Chart) -> u32 {
    let longest = chart.curves.iter().map(|curve| curve.name.chars().count()).max().unwrap_or(0);
    (longest as u32 * CHARACTER_WIDTH + LEGEND_SAMPLE as u32 + 20).min(WIDTH / 2)
}

/// Beside the plot, where no curve can be under it.
fn draw_legend<'a>(area: &Area<'a>, curves: &[Curve]) -> Result<(), Failure<'a>> {
    let text = TextStyle::from((FONT, FONT_SIZE)).pos(Pos::new(HPos::Left, VPos::Center));
    for (index, curve) in curves.iter().enumerate() {
        let middle = 60 + LEGEND_LINE * index as i32;
        let (from, to) = ((0, middle), (LEGEND_SAMPLE, middle));
        let colour = colour(curve, index);
        let line = colour.stroke_width(2);
        match curve.look {
            Look::Measured => area.draw(&PathElement::new(vec![from, to], line))?,
            Look::Reference => area.draw(&DashedPathElement::new([from, to], 7, 5, line))?,
            Look::Scattered => {}
        }
        if curve.look != Look::Reference {
            let mark = Polygon::new(MARKS[index % MARKS.len()], colour.filled());
            area.draw(&(EmptyElement::at((LEGEND_SAMPLE / 2, middle)) + mark))?;
        }
        area.draw(&Text::new(curve.name.clone(), (LEGEND_SAMPLE + 8, middle), text.clone()))?;
    }
    Ok(())
}
