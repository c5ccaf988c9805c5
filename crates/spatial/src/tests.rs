//! Windows against a comparison with each rectangle.
use proptest::prelude::*;

use crate::cell::{Cell, Places, cover, place};
use crate::{KEY_BYTES, Mbr, Plan, Relation, entries, estimated};

const RELATIONS: [Relation; 5] = [
    Relation::Intersects,
    Relation::Within,
    Relation::Contains,
    Relation::Disjoint,
    Relation::Equal,
];

const EXTREMES: [f64; 7] =
    [0.0, -0.0, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];

/// A coordinate: of a small grid, so that borders meet; even over a world; or any at all.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-4i32..5).prop_map(|at| f64::from(at) * 0.5),
        4 => -180.0..180.0f64,
        2 => (250i32..262).prop_map(f64::from),
        2 => -3e7..3e7f64,
        1 => any::<f64>().prop_filter("a number", |at| !at.is_nan()),
        1 => prop::sample::select(EXTREMES.to_vec()),
    ]
}

fn mbr() -> impl Strategy<Value = Mbr> {
    let side = prop_oneof![Just(0.0), 0.0..2.0f64, 0.0..1e4f64, Just(f64::INFINITY)];
    ([coordinate(), coordinate()], [side.clone(), side]).prop_map(|(min, side)| {
        let max = [0, 1].map(|a| (min[a] + side[a]).max(min[a]));
        Mbr::new(min, max).unwrap_or(Mbr::new(min, min).expect("numbers"))
    })
}

/// All entries of rows, sorted as a tree has them: key, row, payload.
fn tree(rows: &[Mbr]) -> Vec<(Vec<u8>, usize, Vec<u8>)> {
    let mut all = Vec::new();
    for (row, mbr) in rows.iter().enumerate() {
        entries(mbr, |key, payload| all.push((key.to_vec(), row, payload.to_vec())));
    }
    all.sort();
    all
}

fn found(tree: &[(Vec<u8>, usize, Vec<u8>)], plan: &Plan) -> Vec<usize> {
    let mut rows = Vec::new();
    for (from, to) in plan.ranges() {
        for (key, row, payload) in tree.iter().filter(|(key, ..)| from <= &key[..] && &key[..] < to)
        {
            if plan.reports(key, payload).expect("well-formed") {
                rows.push(*row);
            }
        }
    }
    rows.sort_unstable();
    rows
}

proptest! {
    #[test]
    fn a_window_finds_each_row_that_fits_once(
        rows in prop::collection::vec(mbr(), 0..60),
        windows in prop::collection::vec(mbr(), 1..8),
        same in any::<prop::sample::Index>(),
    ) {
        let tree = tree(&rows);
        let own = (!rows.is_empty()).then(|| rows[same.index(rows.len())]);
        for window in windows.into_iter().chain(own) {
            for relation in RELATIONS {
                let fit = |row: &usize| window.fits(relation, &rows[*row]);
                let expected: Vec<usize> = (0..rows.len()).filter(fit).collect();
                let plan = Plan::new(window, relation);
                prop_assert_eq!(found(&tree, &plan), expected, "{:?} {:?}", relation, window);
            }
        }
    }

    #[test]
    fn ranges_are_ascending_and_apart(window in mbr()) {
        for relation in RELATIONS {
            let plan = Plan::new(window, relation);
            let bounds: Vec<&[u8]> = plan.ranges().flat_map(|(from, to)| [from, to]).collect();
            prop_assert!(bounds.chunks(2).all(|range| range[0] < range[1]));
            prop_assert!(bounds.windows(2).all(|two| two[0] <= two[1]), "{:?}", relation);
        }
    }

    #[test]
    fn places_are_in_the_order_of_coordinates(a in coordinate(), b in coordinate()) {
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(place(a) <= place(b), "{a} {b}");
        prop_assert!(place(b) < 1 << 48);
    }

    #[test]
    fn a_rectangle_has_one_to_four_entries_and_comes_back(mbr in mbr()) {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut kept = Vec::new();
        entries(&mbr, |key, payload| {
            keys.push(key.to_vec());
            kept.push(Mbr::decode(payload));
        });
        prop_assert!((1..=4).contains(&keys.len()));
        prop_assert!(keys.windows(2).all(|two| two[0] < two[1]));
        prop_assert!(keys.iter().all(|key| key.len() == KEY_BYTES));
        prop_assert!(kept.iter().all(|kept| *kept == Some(mbr)));
        // Together its cells hold it.
        let places = Places::of(&mbr);
        let cells = cover(&places);
        for corner in [places.min, places.max] {
            prop_assert!(cells.contains(&Cell::of(corner, cells[0].level())));
        }
    }

    #[test]
    fn any_bytes_are_a_rectangle_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let plan = Plan::new(Mbr::new([0.0; 2], [1.0; 2]).expect("a window"), Relation::Disjoint);
        let _ = plan.reports(&bytes, &bytes);
    }
}

#[test]
fn both_zeros_have_one_place() {
    let (a, b) = (Mbr::new([-0.0; 2], [0.0; 2]), Mbr::new([0.0; 2], [-0.0; 2]));
    assert_eq!(a, b);
    let kept = |mbr: Option<Mbr>| tree(&[mbr.expect("a point")]);
    assert_eq!(kept(a), kept(b));
}

#[test]
fn what_has_no_points_is_no_rectangle() {
    assert_eq!(Mbr::new([f64::MAX; 2], [f64::MIN; 2]), None);
    assert_eq!(Mbr::new([f64::NAN, 0.0], [1.0, 1.0]), None);
    assert_eq!(Mbr::new([0.0, 0.0], [1.0, f64::NAN]), None);
}

/// A window of a hundredth of a world's side reads few rows that do not fit.
#[test]
fn few_points_are_read_in_vain() {
    let mut state = 1u64;
    let mut even = |below: f64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 * below
    };
    let points: Vec<Mbr> = (0..20_000)
        .map(|_| [even(360.0) - 180.0, even(180.0) - 90.0])
        .map(|at| Mbr::new(at, at).expect("a point"))
        .collect();
    let tree = tree(&points);
    let (mut read, mut fit) = (0, 0);
    for _ in 0..50 {
        let min = [even(340.0) - 180.0, even(170.0) - 90.0];
        let window = Mbr::new(min, [min[0] + 18.0, min[1] + 9.0]).expect("a window");
        let plan = Plan::new(window, Relation::Intersects);
        assert!(plan.ranges().len() < 120, "{}", plan.ranges().len());
        for (from, to) in plan.ranges() {
            read += tree.iter().filter(|(key, ..)| from <= &key[..] && &key[..] < to).count();
        }
        fit += found(&tree, &plan).len();
    }
    assert!(read < fit * 2, "{read} read for {fit}");
}

/// Even points: what an estimate's ranges hold of them, by their shares, is about what fits.
#[test]
fn an_estimate_is_near_to_what_is_found() {
    let side = 300;
    let points: Vec<Mbr> = (0..side * side)
        .map(|n| [f64::from(n % side) * 0.6 - 90.0, f64::from(n / side) * 0.6 - 90.0])
        .map(|at| Mbr::new(at, at).expect("a point"))
        .collect();
    let tree = tree(&points);
    for (min, size) in [([-50.0, -50.0], 30.0), ([-7.0, -7.0], 15.0), ([3.0, 40.0], 7.0)] {
        let window = Mbr::new(min, min.map(|at| at + size)).expect("a window");
        let found = found(&tree, &Plan::new(window, Relation::Within)).len() as f64;
        let ranges = estimated(&window, Relation::Within);
        assert!(ranges.len() <= 4, "{}", ranges.len());
        let within = |from: &[u8], to: &[u8]| {
            tree.iter().filter(|(key, ..)| from <= &key[..] && &key[..] < to).count() as f64
        };
        let said: f64 = ranges.iter().map(|(from, to, share)| share * within(from, to)).sum();
        assert!((0.7..1.4).contains(&(said / found)), "{said} for {found}");
    }
}
