//! A directed graph in flat arrays: its strongly connected components (R. Tarjan, 1972, without
//! recursion) and the cheapest circle in one.

use std::collections::VecDeque;

/// An edge that costs 1 has a label; one that costs nothing is an order within a transaction.
pub(crate) const FREE: u32 = u32::MAX;

/// How many nodes of one component are tried as the start of its cheapest circle.
const STARTS_MAX: usize = 256;
/// How many edges are looked at for one component's cheapest circle, after the first circle.
const WORK_MAX: usize = 4_000_000;

/// An edge while the graph is being collected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// What the edge stands for, or [`FREE`].
    pub(crate) label: u32,
}

pub(crate) struct Graph {
    /// `edges[first[n]..first[n + 1]]` leave node n.
    first: Vec<u32>,
    edges: Vec<Edge>,
}

impl Graph {
    pub(crate) fn new(nodes: usize, edges: &[Edge]) -> Graph {
        let mut first = vec![0u32; nodes + 1];
        for edge in edges {
            first[edge.from as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut sorted = edges.to_vec();
        for edge in edges {
            let at = &mut next[edge.from as usize];
            sorted[*at as usize] = *edge;
            *at += 1;
        }
        Graph { first, edges: sorted }
    }

    fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    fn leaving(&self, node: u32) -> &[Edge] {
        let node = node as usize;
        &self.edges[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// The components of two nodes and more, as lists of nodes.
    pub(crate) fn components(&self) -> Vec<Vec<u32>> {
        const UNSEEN: u32 = u32::MAX;
        let nodes = self.nodes();
        let mut order = vec![UNSEEN; nodes];
        let mut low = vec![0u32; nodes];
        let mut on_stack = vec![false; nodes];
        let (mut stack, mut path, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0;
        for root in 0..nodes as u32 {
            if order[root as usize] != UNSEEN {
                continue;
            }
            path.push((root, 0));
            while let Some(&mut (node, ref mut tried)) = path.last_mut() {
                let n = node as usize;
                if *tried == 0 {
                    (order[n], low[n], on_stack[n]) = (count, count, true);
                    count += 1;
                    stack.push(node);
                }
                if let Some(edge) = self.leaving(node).get(*tried) {
                    *tried += 1;
                    let to = edge.to as usize;
                    if order[to] == UNSEEN {
                        path.push((edge.to, 0));
                    } else if on_stack[to] {
                        low[n] = low[n].min(order[to]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    low[parent as usize] = low[parent as usize].min(low[n]);
                }
                if low[n] == order[n] {
                    let from = stack.iter().rposition(|&s| s == node).unwrap_or(0);
                    let members = stack.split_off(from);
                    members.iter().for_each(|&m| on_stack[m as usize] = false);
                    if members.len() > 1 {
                        found.push(members);
                    }
                }
            }
        }
        found
    }

    /// The circle in this component with the fewest edges that are not free; its edges in order.
    /// Exact for components that are not huge: then the best of many starts.
    pub(crate) fn cheapest_circle(&self, component: &[u32]) -> Vec<Edge> {
        let mut inside = vec![false; self.nodes()];
        component.iter().for_each(|&node| inside[node as usize] = true);
        let mut best: Vec<Edge> = Vec::new();
        let mut cost_best = u32::MAX;
        let mut work = 0;
        let mut search = Search::new(self.nodes());
        let starts = component.iter().copied().filter(|&node| {
            self.leaving(node).iter().any(|edge| edge.label != FREE && inside[edge.to as usize])
        });
        for start in starts.take(STARTS_MAX) {
            if let Some((cost, circle)) = search.from(self, start, &inside, cost_best, &mut work) {
                (cost_best, best) = (cost, circle);
            }
            // Two is the least: no transaction depends on itself.
            if cost_best <= 2 || (work > WORK_MAX && !best.is_empty()) {
                break;
            }
        }
        best
    }
}

/// Breadth first with costs of 0 and 1; the arrays are kept from one start to the next.
struct Search {
    cost: Vec<u32>,
    came_by: Vec<Option<Edge>>,
    touched: Vec<u32>,
    queue: VecDeque<(u32, u32)>,
}

impl Search {
    fn new(nodes: usize) -> Search {
        Search {
            cost: vec![u32::MAX; nodes],
            came_by: vec![None; nodes],
            touched: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// The cheapest circle through `start`, if it costs less than `limit`.
    fn from(
        &mut self,
        graph: &Graph,
        start: u32,
        inside: &[bool],
        limit: u32,
        work: &mut usize,
    ) -> Option<(u32, Vec<Edge>)> {
        for node in self.touched.drain(..) {
            self.cost[node as usize] = u32::MAX;
            self.came_by[node as usize] = None;
        }
        self.queue.clear();
        self.queue.push_back((0, start));
        // The start's cost stays unset until the circle has come back to it.
        while let Some((cost, node)) = self.queue.pop_front() {
            let known = self.cost[node as usize];
            if node == start && known != u32::MAX {
                return (known < limit).then(|| (known, self.circle(start)));
            }
            if (node != start && known < cost) || cost >= limit {
                continue;
            }
            for edge in graph.leaving(node) {
                *work += 1;
                let to = edge.to as usize;
                let step = u32::from(edge.label != FREE);
                if !inside[to] || cost + step >= self.cost[to] {
                    continue;
                }
                self.cost[to] = cost + step;
                self.came_by[to] = Some(*edge);
                self.touched.push(edge.to);
                match step {
                    0 => self.queue.push_front((cost, edge.to)),
                    _ => self.queue.push_back((cost + 1, edge.to)),
                }
            }
        }
        None
    }

    fn circle(&self, start: u32) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut node = start;
        while let Some(edge) = self.came_by[node as usize] {
            edges.push(edge);
            node = edge.from;
            if node == start {
                break;
            }
        }
        edges.reverse();
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(nodes: usize, edges: &[(u32, u32, u32)]) -> Graph {
        let edges: Vec<Edge> =
            edges.iter().map(|&(from, to, label)| Edge { from, to, label }).collect();
        Graph::new(nodes, &edges)
    }

    #[test]
    fn a_line_has_no_component_and_a_long_one_does_not_recurse() {
        let edges: Vec<_> = (0..200_000).map(|n| (n, n + 1, 0)).collect();
        assert!(graph(200_001, &edges).components().is_empty());
    }

    #[test]
    fn the_cheapest_circle_counts_labelled_edges_only() {
        // 0 1 2 3 in a circle, with a free detour that is longer but cheaper.
        let edges = [(0, 1, 7), (1, 2, 8), (2, 0, 9), (1, 3, FREE), (3, 4, FREE), (4, 0, 5)];
        let graph = graph(5, &edges);
        let components = graph.components();
        assert_eq!(components.len(), 1);
        assert_eq!(components[0].len(), 5);
        let circle = graph.cheapest_circle(&components[0]);
        let mut labels: Vec<_> = circle.iter().map(|edge| edge.label).collect();
        labels.retain(|&label| label != FREE);
        labels.sort_unstable();
        assert_eq!(labels, [5, 7]);
        assert!(circle.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!(circle[0].from, circle[circle.len() - 1].to);
    }

    /// Which nodes reach which, by squaring: slow and plain.
    fn reach(nodes: usize, edges: &[(u32, u32, u32)]) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; nodes]; nodes];
        edges.iter().for_each(|&(a, b, _)| reach[a as usize][b as usize] = true);
        for k in 0..nodes {
            for a in 0..nodes {
                for b in 0..nodes {
                    reach[a][b] |= reach[a][k] && reach[k][b];
                }
            }
        }
        reach
    }

    proptest! {
        #[test]
        fn components_are_what_reaches_each_other(
            edges in prop::collection::vec((0u32..9, 0u32..9, 0u32..3), 0..24)
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|&(a, b, _)| a != b).collect();
            let reach = reach(9, &edges);
            let mut found: Vec<Vec<u32>> = graph(9, &edges).components();
            for component in &mut found {
                component.sort_unstable();
                let circle = graph(9, &edges).cheapest_circle(component);
                prop_assert!(circle.len() >= 2);
                prop_assert_eq!(circle[0].from, circle[circle.len() - 1].to);
            }
            found.sort();
            let mut expected: Vec<Vec<u32>> = (0..9usize)
                .map(|a| (0..9).filter(|&b| reach[a][b as usize] && reach[b as usize][a]).collect())
                .filter(|component: &Vec<u32>| component.len() > 1)
                .collect();
            expected.sort();
            expected.dedup();
            prop_assert_eq!(found, expected);
        }
    }
}
