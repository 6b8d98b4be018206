//! Plots as SVG text: grouped bars and lines, with axes, ticks, a legend and a goal.
//!
//! Colors are those of M. Okabe and K. Ito, "Color Universal Design" (2008), told apart by all
//! readers; text is dark on an opaque ground, so that a plot reads the same on any page.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 64.0;
/// Room that a character of the legend takes, about.
const LETTER: f64 = 6.7;
const COLORS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#6b6b6b"];

/// A picture of figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Ends the file's name: letters, digits and `-`.
    pub name: String,
    /// Stands above it.
    pub title: String,
    /// What the horizontal axis shows.
    pub x_label: String,
    /// What the vertical axis shows, with its unit.
    pub y_label: String,
    /// The figures.
    pub shape: Shape,
    /// A value to reach or to stay below, drawn across, with its words.
    pub goal: Option<(f64, String)>,
}

/// How figures are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Groups of bars from zero: the groups' names, and per series one value per group.
    Bars(Vec<String>, Vec<Series<f64>>),
    /// Lines through points of x and y, which need not begin at zero.
    Lines(Vec<Series<(f64, f64)>>),
}

/// Values of one color.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<T> {
    /// Stands in the legend.
    pub name: String,
    /// The values, in order.
    pub values: Vec<T>,
}

impl<T> Series<T> {
    /// Names values.
    #[must_use]
    pub fn new(name: impl Into<String>, values: Vec<T>) -> Self {
        Self { name: name.into(), values }
    }
}

impl Plot {
    /// Draws the plot; the same figures give the same text. Values that are not finite are left out.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"12\" fill=\"#222\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             fill=\"#fff\"/>\n"
        );
        text(&mut svg, (LEFT, 24.0), "start", &self.title, " font-size=\"15\" font-weight=\"600\"");
        match &self.shape {
            Shape::Bars(groups, series) => self.bars(&mut svg, groups, series),
            Shape::Lines(series) => self.lines(&mut svg, series),
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn bars(&self, svg: &mut String, groups: &[String], series: &[Series<f64>]) {
        legend(svg, series.iter().map(|one| one.name.as_str()));
        let values = series.iter().flat_map(|one| one.values.iter().copied());
        let y = Axis::over(values.chain([0.0]).chain(self.goal_value()), (HEIGHT - BOTTOM, TOP));
        self.frame(svg, &y);
        let room = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
        let width = (room * 0.8 / series.len().max(1) as f64).min(60.0);
        for (index, group) in groups.iter().enumerate() {
            let middle = LEFT + room * (index as f64 + 0.5);
            let start = middle - width * series.len() as f64 / 2.0;
            for (position, one) in series.iter().enumerate() {
                let Some(value) = one.values.get(index).filter(|value| value.is_finite()) else {
                    continue;
                };
                let (zero, end) = (y.at(0.0), y.at(*value));
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                     fill=\"{}\"><title>{}: {} {}</title></rect>",
                    start + width * position as f64 + 0.5,
                    zero.min(end),
                    (width - 1.0).max(1.0),
                    (zero - end).abs(),
                    color(position),
                    escaped(group),
                    escaped(&one.name),
                    short(*value),
                );
            }
            text(svg, (middle, HEIGHT - BOTTOM + 18.0), "middle", group, "");
        }
        self.goal(svg, &y);
    }

    fn lines(&self, svg: &mut String, series: &[Series<(f64, f64)>]) {
        legend(svg, series.iter().map(|one| one.name.as_str()));
        let points = || series.iter().flat_map(|one| one.values.iter().copied());
        let ys = points().map(|point| point.1).chain(self.goal_value());
        let y = Axis::over(ys, (HEIGHT - BOTTOM, TOP));
        let x = Axis::over(points().map(|point| point.0), (LEFT, WIDTH - RIGHT));
        self.frame(svg, &y);
        for tick in x.ticks() {
            text(svg, (x.at(tick), HEIGHT - BOTTOM + 18.0), "middle", &short(tick), "");
        }
        for (position, one) in series.iter().enumerate() {
            let finite = one.values.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
            let path: Vec<String> =
                finite.map(|point| format!("{:.1},{:.1}", x.at(point.0), y.at(point.1))).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" \
                 stroke-linejoin=\"round\"/>",
                path.join(" "),
                color(position)
            );
        }
        self.goal(svg, &y);
    }

    /// Draws the vertical axis with its grid, and both labels.
    fn frame(&self, svg: &mut String, y: &Axis) {
        for tick in y.ticks() {
            line(svg, y.at(tick), "#ddd", "");
            text(svg, (LEFT - 8.0, y.at(tick) + 4.0), "end", &short(tick), "");
        }
        text(svg, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16.0), "middle", &self.x_label, "");
        let (across, middle) = (18.0, (TOP + HEIGHT - BOTTOM) / 2.0);
        let turned = format!(" transform=\"rotate(-90 {across} {middle})\"");
        text(svg, (across, middle), "middle", &self.y_label, &turned);
    }

    fn goal_value(&self) -> Option<f64> {
        self.goal.as_ref().map(|(value, _)| *value)
    }

    fn goal(&self, svg: &mut String, y: &Axis) {
        if let Some((value, words)) = &self.goal {
            line(svg, y.at(*value), "#222", " stroke-dasharray=\"5 4\"");
            text(svg, (WIDTH - RIGHT, y.at(*value) - 5.0), "end", words, "");
        }
    }
}

/// Places numbers along a stretch of the picture.
#[derive(Debug)]
struct Axis {
    low: f64,
    high: f64,
    step: f64,
    stretch: (f64, f64),
}

impl Axis {
    /// Spans all finite values, out to whole steps of 1, 2 or 5 times a power of ten.
    fn over(values: impl Iterator<Item = f64>, stretch: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if high - low <= f64::EPSILON * high.abs() {
            high = low + low.abs().max(1.0);
        }
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        // A bound that lies on a step but for rounding stays there.
        let low = ((low / step) + 1e-9).floor() * step;
        let high = ((high / step) - 1e-9).ceil() * step;
        Self { low, high, step, stretch }
    }

    fn at(&self, value: f64) -> f64 {
        let (from, to) = self.stretch;
        from + (to - from) * (value - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> Vec<f64> {
        (0..=20_u32)
            .map(|index| self.low + self.step * f64::from(index))
            .take_while(|tick| *tick <= self.high + self.step * 1e-6)
            .collect()
    }
}

fn legend<'n>(svg: &mut String, names: impl Iterator<Item = &'n str>) {
    let mut across = LEFT;
    for (position, name) in names.enumerate() {
        let _ = writeln!(
            svg,
            "<rect x=\"{across:.1}\" y=\"38\" width=\"11\" height=\"11\" fill=\"{}\"/>",
            color(position)
        );
        text(svg, (across + 16.0, 48.0), "start", name, "");
        across += 34.0 + LETTER * name.chars().count() as f64;
    }
}

fn line(svg: &mut String, y: f64, stroke: &str, more: &str) {
    let right = WIDTH - RIGHT;
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{stroke}\"{more}/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str, more: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{}</text>",
        escaped(words)
    );
}

fn color(position: usize) -> &'static str {
    COLORS[position % COLORS.len()]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Prints a number without digits that say nothing.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    let bare = text.trim_end_matches('0').trim_end_matches('.');
    if bare == "-0" { "0".to_owned() } else { bare.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Plot, Series, Shape, short};

    fn plot(shape: Shape) -> Plot {
        Plot {
            name: "p".to_owned(),
            title: "a < b".to_owned(),
            x_label: "graph".to_owned(),
            y_label: "ratio".to_owned(),
            shape,
            goal: Some((0.5, "goal".to_owned())),
        }
    }

    #[test]
    fn bars_stand_on_zero_and_are_as_high_as_their_values() {
        let groups = vec!["one".to_owned(), "two".to_owned()];
        let series = vec![Series::new("us", vec![1.0, 0.5]), Series::new("them", vec![0.0])];
        let svg = plot(Shape::Bars(groups, series)).svg();
        assert!(
            svg.contains("height=\"266.0\" fill=\"#0072b2\"><title>one: us 1</title>"),
            "{svg}"
        );
        assert!(svg.contains("height=\"133.0\" fill=\"#0072b2\"><title>two: us 0.5</title>"));
        assert!(svg.contains("height=\"0.0\" fill=\"#e69f00\"><title>one: them 0</title>"));
        assert!(!svg.contains("two: them"), "a value that is not there has no bar");
        assert!(svg.contains("a &lt; b") && svg.contains(">goal</text>"));
    }

    #[test]
    fn lines_go_through_their_points_and_leave_out_what_is_no_number() {
        let points = vec![(1.0, 0.0), (2.0, f64::NAN), (3.0, 1.0)];
        let svg = plot(Shape::Lines(vec![Series::new("us", points)])).svg();
        assert!(svg.contains("<polyline points=\"76.0,336.0 740.0,70.0\""), "{svg}");
    }

    #[test]
    fn axes_end_on_round_numbers_and_survive_values_that_are_all_the_same() {
        let ends = |values: &[f64]| {
            let axis = Axis::over(values.iter().copied(), (0.0, 1.0));
            (short(axis.low), short(axis.high), axis.ticks().len())
        };
        assert_eq!(ends(&[0.0, 0.93]), ("0".to_owned(), "1".to_owned(), 6));
        assert_eq!(ends(&[-3.0, 48.0]), ("-20".to_owned(), "60".to_owned(), 5));
        assert_eq!(ends(&[7.0, 7.0]).2, 5);
        assert_eq!(ends(&[]), ("0".to_owned(), "1".to_owned(), 6));
    }
}
