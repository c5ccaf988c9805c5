//! Rectangles with sides along the axes, and how they lie to each other.

/// The smallest rectangle around a geometry: all of its points have coordinates between `min` and
/// `max`, both included. It may be a line or a point; coordinates may be infinite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mbr {
    min: [f64; 2],
    max: [f64; 2],
}

/// How a row's rectangle has to lie to a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// It has a point in common with the window.
    Intersects,
    /// It lies in the window, borders included.
    Within,
    /// The window lies in it, borders included.
    Contains,
    /// It has no point in common with the window.
    Disjoint,
    /// It is the window.
    Equal,
}

impl Mbr {
    /// A rectangle between two corners. `None`: it has no points (`min` is greater than `max`, as
    /// around an empty geometry), or a coordinate is not a number.
    #[must_use]
    pub fn new(min: [f64; 2], max: [f64; 2]) -> Option<Mbr> {
        // Zero has two signs, which are equal and must have one place.
        let (min, max) = (min.map(|at| at + 0.0), max.map(|at| at + 0.0));
        (min[0] <= max[0] && min[1] <= max[1]).then_some(Mbr { min, max })
    }

    /// The corner with the least coordinates.
    #[must_use]
    pub fn min(&self) -> [f64; 2] {
        self.min
    }

    /// The corner with the greatest coordinates.
    #[must_use]
    pub fn max(&self) -> [f64; 2] {
        self.max
    }

    /// Whether a row's rectangle lies so to this window.
    #[must_use]
    pub fn fits(&self, relation: Relation, row: &Mbr) -> bool {
        let meets = || (0..2).all(|a| row.min[a] <= self.max[a] && self.min[a] <= row.max[a]);
        let holds = |outer: &Mbr, inner: &Mbr| {
            (0..2).all(|a| outer.min[a] <= inner.min[a] && inner.max[a] <= outer.max[a])
        };
        match relation {
            Relation::Intersects => meets(),
            Relation::Within => holds(self, row),
            Relation::Contains => holds(row, self),
            Relation::Disjoint => !meets(),
            Relation::Equal => self == row,
        }
    }

    /// As an entry keeps it, 16 bytes for a point and 32 for others: coordinates of the least
    /// corner, then of the greatest, as little-endian doubles.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let corners = [self.min, self.max];
        let kept = if self.min == self.max { &corners[..1] } else { &corners[..] };
        kept.iter().flatten().for_each(|at| out.extend_from_slice(&at.to_le_bytes()));
    }

    /// `None`: the bytes are not of a rectangle.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Mbr> {
        let corner = |bytes: &[u8]| -> Option<[f64; 2]> {
            let (x, y) = bytes.split_first_chunk::<8>()?;
            Some([f64::from_le_bytes(*x), f64::from_le_bytes(y.try_into().ok()?)])
        };
        match bytes.len() {
            16 => corner(bytes).and_then(|at| Mbr::new(at, at)),
            32 => Mbr::new(corner(&bytes[..16])?, corner(&bytes[16..])?),
            _ => None,
        }
    }
}
