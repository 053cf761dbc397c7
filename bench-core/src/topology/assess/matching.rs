//! Which of several HCAs each GPU gets: smallest distance first, then as evenly as the distances allow.
//!
//! A matching by augmenting paths, one distance after the other. With enough HCAs each serves one GPU; with too few,
//! each GPU keeps to its nearest ones, and the HCAs share the GPUs as evenly as that allows. GPUs and HCAs are tried in
//! their order, so that equal ones go by order. Up to 256 GPUs and 512 HCAs; each GPU is placed once.

use crate::topology::model::Distance;

/// The chosen HCA of each GPU, as positions; `distances[gpu][hca]`.
pub(super) fn assign(distances: &[Vec<Option<Distance>>], hcas: usize, seats: usize) -> Vec<Option<usize>> {
    let mut matching = Matching { chosen: vec![None; distances.len()], served: vec![Vec::new(); hcas] };
    if hcas == 0 {
        return matching.chosen;
    }
    let shared = distances.len() > hcas.saturating_mul(seats) || seats > 1;
    let reachable: Vec<usize> =
        (0..distances.len()).filter(|gpu| distances[*gpu].iter().any(Option::is_some)).collect();
    // More seats than asked are only for GPUs that would otherwise have no HCA at all.
    for most in [seats, distances.len()] {
        for level in Distance::ALL {
            for capacity in 1..=most {
                for gpu in reachable.iter().copied() {
                    if matching.chosen[gpu].is_none() {
                        let edges = Edges { distances, level, own_best: shared };
                        matching.place(gpu, &edges, capacity);
                    }
                }
                if reachable.iter().all(|gpu| matching.chosen[*gpu].is_some()) {
                    return matching.chosen;
                }
            }
        }
    }
    matching.chosen
}

/// Which HCAs a GPU may take.
struct Edges<'a> {
    distances: &'a [Vec<Option<Distance>>],
    level: Distance,
    /// Only the nearest of the GPU itself.
    own_best: bool,
}

impl Edges<'_> {
    /// The HCAs of a GPU at most as far as the level, nearest first, then in order.
    fn of(&self, gpu: usize) -> Vec<usize> {
        let row = &self.distances[gpu];
        let best = row.iter().flatten().min().copied();
        let limit = if self.own_best { best.filter(|best| *best <= self.level) } else { Some(self.level) };
        let Some(limit) = limit else { return Vec::new() };
        let mut found: Vec<(Distance, usize)> = row
            .iter()
            .enumerate()
            .filter_map(|(hca, d)| Some(((*d)?, hca)))
            .filter(|(d, _)| *d <= limit)
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, hca)| hca).collect()
    }
}

/// Who has whom.
struct Matching {
    chosen: Vec<Option<usize>>,
    served: Vec<Vec<usize>>,
}

impl Matching {
    /// Finds an HCA for a GPU; others move where that makes room. Breadth first, so no recursion.
    fn place(&mut self, gpu: usize, edges: &Edges<'_>, capacity: usize) {
        let mut came_from: Vec<Option<usize>> = vec![None; self.served.len()];
        let mut queue = std::collections::VecDeque::from([gpu]);
        let mut free = None;
        'search: while let Some(current) = queue.pop_front() {
            for hca in edges.of(current) {
                if came_from[hca].is_some() || self.chosen[current] == Some(hca) {
                    continue;
                }
                came_from[hca] = Some(current);
                if self.served[hca].len() < capacity {
                    free = Some(hca);
                    break 'search;
                }
                queue.extend(self.served[hca].iter().copied());
            }
        }
        // Along the way back each GPU takes the place that the one before it leaves.
        while let Some(hca) = free {
            let Some(taker) = came_from[hca] else { return };
            let left = self.chosen[taker].replace(hca);
            self.served[hca].push(taker);
            if let Some(left) = left {
                self.served[left].retain(|served| *served != taker);
            }
            free = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Distance::{Node, Pix, Pxb, Sys};

    fn rows(rows: &[&[Distance]]) -> Vec<Vec<Option<Distance>>> {
        rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect()
    }

    #[test]
    fn two_gpus_with_the_same_two_hcas_get_one_each_in_order() {
        let chosen = assign(&rows(&[&[Pix, Pix], &[Pix, Pix]]), 2, 1);
        assert_eq!(chosen, [Some(0), Some(1)]);
    }

    #[test]
    fn a_gpu_moves_to_its_other_hca_to_make_room() {
        let chosen = assign(&rows(&[&[Pix, Pix], &[Pix, Sys]]), 2, 1);
        assert_eq!(chosen, [Some(1), Some(0)]);
    }

    #[test]
    fn the_nearest_is_shared_where_there_are_too_few() {
        let chosen = assign(&rows(&[&[Pix, Pxb], &[Pix, Pxb], &[Pxb, Pix], &[Pxb, Pix]]), 2, 2);
        assert_eq!(chosen, [Some(0), Some(0), Some(1), Some(1)]);
    }

    #[test]
    fn gpus_without_a_near_hca_are_spread_evenly() {
        let distances = rows(&[&[Node, Node], &[Pix, Node], &[Node, Node], &[Node, Pix]]);
        let chosen = assign(&distances, 2, 2);
        assert_eq!((chosen[1], chosen[3]), (Some(0), Some(1)));
        assert_ne!(chosen[0], chosen[2]);
    }

    #[test]
    fn nothing_is_chosen_where_nothing_is_known() {
        assert_eq!(assign(&[vec![None, None]], 2, 1), [None]);
        assert_eq!(assign(&[vec![]], 0, 1), [None]);
    }

    /// The most GPUs that can have an HCA at PIX, by trying everything.
    fn most_pix(rows: &[Vec<Option<Distance>>], taken: &mut Vec<usize>) -> usize {
        let Some((row, rest)) = rows.split_first() else { return 0 };
        let mut best = most_pix(rest, taken);
        for (hca, distance) in row.iter().enumerate() {
            if *distance == Some(Pix) && !taken.contains(&hca) {
                taken.push(hca);
                best = best.max(1 + most_pix(rest, taken));
                taken.pop();
            }
        }
        best
    }

    proptest::proptest! {
        /// With an HCA for each GPU nobody shares, and as many as possible are at the smallest distance.
        #[test]
        fn with_enough_hcas_nobody_shares_and_most_are_near(
            near in proptest::collection::vec(proptest::collection::vec(proptest::bool::weighted(0.4), 5), 1..=5)
        ) {
            let word = |near: &bool| Some(if *near { Pix } else { Sys });
            let distances: Vec<Vec<Option<Distance>>> = near.iter().map(|row| row.iter().map(word).collect()).collect();
            let chosen: Vec<usize> = assign(&distances, 5, 1).into_iter().flatten().collect();
            let mut distinct = chosen.clone();
            distinct.sort_unstable();
            distinct.dedup();
            proptest::prop_assert_eq!(distinct.len(), distances.len());
            let at_pix = chosen.iter().zip(&distances).filter(|(hca, row)| row[**hca] == Some(Pix)).count();
            proptest::prop_assert_eq!(at_pix, most_pix(&distances, &mut Vec::new()));
        }
    }
}
