//! Curves as one SVG picture, for a page that runs no scripts.
use super::cell::Cell;
use super::pages::ENGINES;
use std::fmt::Write;

/// A name, a colour and a value a second.
pub(super) struct Curve<'a> {
    name: &'static str,
    colour: &'static str,
    values: &'a [f64],
}

const COLOURS: [&str; 4] = ["#d1495b", "#edae49", "#8d96a3", "#00798c"];

/// TPC-C on the limited disk, without the binary log: a curve for each engine.
pub(super) fn curves(cells: &[Cell]) -> Vec<Curve<'_>> {
    let wanted = |cell: &&Cell| cell.workload == "tpcc" && cell.disk == "limited" && !cell.binlog;
    let of = |(engine, name, colour)| {
        let cell = cells.iter().filter(wanted).find(|cell| cell.engine == engine)?;
        Some(Curve { name, colour, values: &cell.seconds })
    };
    let named = ENGINES.into_iter().zip(COLOURS);
    named.filter_map(|((engine, name), colour)| of((engine, name, colour))).collect()
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 46.0;

/// The next number that is easy to read.
fn round_up(value: f64) -> f64 {
    let ten = 10f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * ten).find(|&step| step >= value).unwrap_or(10.0 * ten)
}

/// The picture. (A String takes all that is written to it.)
pub(super) fn svg(curves: &[Curve<'_>]) -> String {
    let all = || curves.iter().flat_map(|curve| curve.values);
    let top = round_up(all().copied().fold(1.0, f64::max));
    let seconds = curves.iter().map(|curve| curve.values.len()).max().unwrap_or(1).max(2);
    let (wide, high) = (WIDTH - LEFT - 20.0, HEIGHT - TOP - 40.0);
    let x = |second: usize| LEFT + wide * second as f64 / (seconds - 1) as f64;
    let y = |value: f64| TOP + high * (1.0 - value / top);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">TPC-C in MariaDB on a limited disk: \
         transactions in each second</text>\n"
    );
    for part in 0..=4 {
        let value = top * f64::from(part) / 4.0;
        let at = y(value);
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555555\">{value:.0}</text>\n",
            LEFT + wide,
            LEFT - 8.0,
            at + 4.0
        );
    }
    for (number, curve) in curves.iter().enumerate() {
        let mean = curve.values.iter().sum::<f64>() / curve.values.len().max(1) as f64;
        let points = curve.values.iter().enumerate();
        let points: Vec<String> =
            points.map(|(second, &tps)| format!("{:.1},{:.1}", x(second), y(tps))).collect();
        let (at, colour) = (LEFT + 190.0 * number as f64, curve.colour);
        let _ = write!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\n\
             <rect x=\"{at}\" y=\"28\" width=\"12\" height=\"4\" fill=\"{colour}\"/>\n\
             <text x=\"{}\" y=\"35\">{}, mean {mean:.0}</text>\n",
            points.join(" "),
            at + 16.0,
            curve.name
        );
    }
    let _ = write!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555555\">{seconds} s</text>\n</svg>\n",
        LEFT + wide,
        HEIGHT - 14.0
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_that_ran_has_its_curve() {
        let cell = |engine: &str, disk: &str| Cell {
            workload: "tpcc".to_owned(),
            disk: disk.to_owned(),
            engine: engine.to_owned(),
            seconds: vec![120.0, 80.0],
            ..Cell::default()
        };
        let cells = [cell("weir", "limited"), cell("innodb", "limited"), cell("myrocks", "free")];
        let text = svg(&curves(&cells));
        assert_eq!(text.matches("<polyline").count(), 2, "{text}");
        assert!(text.contains("Weir, mean 100") && !text.contains("MyRocks"), "{text}");
        assert!((round_up(120.0) - 150.0).abs() < 1e-9 && (round_up(99.0) - 100.0).abs() < 1e-9);
    }
}
