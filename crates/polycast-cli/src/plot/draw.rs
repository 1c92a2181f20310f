use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::axis::Ticked;
use super::{Chart, Curve, Look, PlotError, Point, legend};

const WIDTH: u32 = 960;
pub(super) const HEIGHT: u32 = 540;
pub(super) const FONT: &str = "sans-serif";
pub(super) const FONT_SIZE: u32 = 14;
/// A generous mean width of a character, since the font is known to whoever looks at the file only.
pub(super) const CHARACTER_WIDTH: u32 = 8;

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

/// Lines without dashes, and lengths and gaps of dashes in pixels.
const DASHES: [Option<(i32, i32)>; 4] = [None, Some((10, 4)), Some((4, 3)), Some((2, 4))];

/// Outlines of marks around their middle. Their number, that of the dashes and that of the colours have no common factor,
/// so that 140 curves differ.
const MARKS: [&[(i32, i32)]; 5] = [
    &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -5), (5, 0), (0, 5), (-5, 0)],
    &[(-5, -4), (5, -4), (0, 5)],
];

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
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
    let (plot, legend) = area.split_horizontally(WIDTH - legend::width(&chart.curves, WIDTH / 2));
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
        draw_curve(&mut context, curve, index, shift(index, chart.curves.len()))?;
    }
    let end = |curve: &Curve| {
        curve
            .points
            .iter()
            .max_by(|a, b| a.x.total_cmp(&b.x))
            .map(|last| context.backend_coord(&(last.x, last.y)).1)
    };
    let ends: Vec<Option<i32>> = chart.curves.iter().map(end).collect();
    legend::draw(&legend, &chart.curves, &ends)?;
    area.present()
}

/// How a curve is told from the others: by colour, by dashes and by marks, so that it stays visible where another one
/// lies on it, and without colours.
pub(super) struct Style {
    pub(super) colour: RGBColor,
    /// Length and gap of its dashes in pixels; a line without them, or no line at all for scattered points.
    pub(super) dash: Option<(i32, i32)>,
    pub(super) mark: Option<&'static [(i32, i32)]>,
}

impl Style {
    pub(super) fn of(curve: &Curve, index: usize) -> Style {
        match curve.look {
            Look::Reference => Style { colour: GREY, dash: Some((7, 5)), mark: None },
            Look::Measured | Look::Scattered => Style {
                colour: COLOURS[index % COLOURS.len()],
                dash: DASHES[index % DASHES.len()],
                mark: Some(MARKS[index % MARKS.len()]),
            },
        }
    }

    pub(super) fn line(&self) -> ShapeStyle {
        self.colour.stroke_width(2)
    }
}

/// `shift`: of the error bars to the right, in pixels, so that those of several curves do not lie on each other.
fn draw_curve<'b>(
    context: &mut Context<'_, 'b>,
    curve: &Curve,
    index: usize,
    shift: i32,
) -> Result<(), Failure<'b>> {
    let style = Style::of(curve, index);
    let points: Vec<(f64, f64)> = curve.points.iter().map(|point| (point.x, point.y)).collect();
    match (curve.look, style.dash) {
        (Look::Scattered, _) => {}
        (_, None) => {
            context.draw_series(LineSeries::new(points.iter().copied(), style.line()))?;
        }
        (_, Some((length, gap))) => {
            context.draw_series(DashedLineSeries::new(points.iter().copied(), length, gap, style.line()))?;
        }
    }
    for point in &curve.points {
        draw_error_bar(context, point, shift, style.colour)?;
    }
    if let Some(mark) = style.mark {
        let marks = points.iter().map(|at| EmptyElement::at(*at) + Polygon::new(mark, style.colour.filled()));
        context.draw_series(marks)?;
    }
    Ok(())
}

fn draw_error_bar<'b>(
    context: &mut Context<'_, 'b>,
    point: &Point,
    shift: i32,
    colour: RGBColor,
) -> Result<(), Failure<'b>> {
    let Some((low, high)) = point.interval else { return Ok(()) };
    let height = |y: f64| context.backend_coord(&(point.x, y)).1;
    let middle = height(point.y);
    let (low, high) = (height(low) - middle, height(high) - middle);
    let cap = |at: i32| PathElement::new(vec![(shift - 4, at), (shift + 4, at)], colour);
    let bar = PathElement::new(vec![(shift, low), (shift, high)], colour);
    let element = EmptyElement::at((point.x, point.y)) + bar + cap(low) + cap(high);
    context.draw_series(std::iter::once(element))?;
    Ok(())
}

/// Shifts of error bars around their points, at most so far to either side.
fn shift(index: usize, curves: usize) -> i32 {
    const FARTHEST: i32 = 12;
    if curves < 2 {
        return 0;
    }
    let step = (2 * FARTHEST / (curves as i32 - 1)).min(5);
    step * index as i32 - step * (curves as i32 - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_curves_all_look_different() {
        let curve = Curve::measured("", Vec::new());
        let look = |index| {
            let Style { colour, dash, mark } = Style::of(&curve, index);
            (colour, dash, mark)
        };
        for a in 0..COLOURS.len() * MARKS.len() * DASHES.len() {
            assert!((0..a).all(|b| look(a) != look(b)), "{a}");
        }
    }

    #[test]
    fn error_bars_of_few_curves_stand_beside_each_other() {
        assert_eq!([0, 1, 2].map(|index| shift(index, 3)), [-5, 0, 5]);
        assert_eq!(shift(0, 1), 0);
        assert!((0..14).all(|index| shift(index, 14).abs() <= 12));
    }
}
