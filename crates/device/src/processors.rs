//! How busy the processors are: work that can wait leaves them to work that cannot.
/// A look is worth nothing sooner than this after the one before.
const LOOK_EVERY_MICROS: u64 = 900_000;

/// What the kernel has counted, in its ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// Of all processors, whatever they did.
    all: u64,
    /// Of these, without work, or with such as stands back for any other (`nice`).
    spare: u64,
    /// Of this process.
    own: u64,
    /// Processors of the machine.
    processors: u64,
}

/// Looks at how busy the processors are, now and then.
#[derive(Debug)]
pub struct Processors {
    last: Option<(u64, Ticks)>,
    busy: f64,
    /// Those that this process may use.
    usable: u64,
}

impl Default for Processors {
    fn default() -> Self {
        let usable = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        Processors { last: None, busy: 0.0, usable }
    }
}

impl Processors {
    /// The share of the processors' time of late that was used, 0 to 1: the machine's, or this
    /// process's of those that it may use, whichever is more. 0 where the kernel does not say.
    pub fn busy(&mut self, now_micros: u64) -> f64 {
        let since = |then: u64| now_micros.saturating_sub(then);
        if self.last.is_some_and(|(then, _)| since(then) < LOOK_EVERY_MICROS) {
            return self.busy;
        }
        let read = |path| std::fs::read_to_string(path).ok();
        let ticks = read("/proc/stat")
            .zip(read("/proc/self/stat"))
            .and_then(|(machine, own)| Ticks::parse(&machine, &own));
        let Some(ticks) = ticks else { return 0.0 };
        if let Some((_, before)) = self.last.replace((now_micros, ticks)) {
            self.busy = ticks.busy_since(&before, self.usable);
        }
        self.busy
    }
}

impl Ticks {
    /// From the texts of `/proc/stat` and `/proc/self/stat` (proc(5)).
    fn parse(machine: &str, own: &str) -> Option<Ticks> {
        let mut lines = machine.lines().take_while(|line| line.starts_with("cpu"));
        let first = lines.next()?.split_ascii_whitespace().skip(1);
        let numbers: Vec<u64> = first.map_while(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guests are within the first two.
        let [_, nice, _, idle, wait, ..] = numbers[..] else { return None };
        // Behind the name, which may have blanks of its own.
        let fields = own.rsplit_once(')')?.1;
        let field = |n: usize| fields.split_ascii_whitespace().nth(n)?.parse::<u64>().ok();
        Some(Ticks {
            all: numbers.iter().take(8).sum(),
            spare: nice + idle + wait,
            own: field(11)? + field(12)?,
            processors: lines.count().max(1) as u64,
        })
    }

    fn busy_since(&self, before: &Ticks, usable: u64) -> f64 {
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let all = since(self.all, before.all);
        if all <= 0.0 {
            return 0.0;
        }
        let machine = 1.0 - since(self.spare, before.spare) / all;
        let own = since(self.own, before.own) / (all / self.processors as f64 * usable as f64);
        machine.max(own).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "77 (a name) b) S 1 77 77 0 -1 4194560 1 0 0 0 300 100 0 0 20 0 9 0 5 6 7";

    fn machine(user: u64, nice: u64, idle: u64) -> String {
        format!("cpu  {user} {nice} 50 {idle} 20 0 3 7 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5 6\n")
    }

    #[test]
    fn the_kernels_counters_are_read() {
        let ticks = Ticks::parse(&machine(1000, 30, 5000), OWN);
        let expected =
            Ticks { all: 1000 + 30 + 50 + 5000 + 20 + 3 + 7, spare: 5050, own: 400, processors: 2 };
        assert_eq!(ticks, Some(expected));
        for (machine, own) in [("", OWN), ("cpu 1 2", OWN), (&*machine(1, 2, 3), "77 (x) S 1")] {
            assert_eq!(Ticks::parse(machine, own), None);
        }
    }

    #[test]
    fn what_stands_back_is_no_work_and_ones_own_share_counts_where_it_is_more() {
        let at = |all, spare, own| Ticks { all, spare, own, processors: 4 };
        let begin = at(0, 0, 0);
        assert_eq!(at(400, 400, 0).busy_since(&begin, 4), 0.0);
        assert_eq!(at(400, 100, 0).busy_since(&begin, 4), 0.75);
        // One of four processors is all that it may use.
        assert_eq!(at(400, 300, 90).busy_since(&begin, 1), 0.9);
        assert_eq!(begin.busy_since(&begin, 1), 0.0);
        assert!((0.0..=1.0).contains(&Processors::default().busy(1)));
    }
}
