//! The numbers of datagrams that each host has received from each other host in a round.

use super::tally::Heard;

/// The counts of a round, from every host to every other. Hosts are counted from 0.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Datagrams that each host sent.
    sent: Vec<u32>,
    /// The counts by receiver, then by sender.
    heard: Vec<Vec<Heard>>,
}

impl Matrix {
    /// A matrix of `hosts` hosts before any of them has sent.
    pub fn new(hosts: usize) -> Matrix {
        Matrix { sent: vec![0; hosts], heard: vec![vec![Heard::default(); hosts]; hosts] }
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.sent.len()
    }

    /// Notes what a host sent.
    pub fn set_sent(&mut self, from: usize, datagrams: u32) {
        self.sent[from] = datagrams;
    }

    /// Notes what a host heard. Senders that are none of the hosts are left out.
    pub fn set_heard(&mut self, to: usize, heard: &[Heard]) {
        for of_one in heard {
            if let Some(cell) = self.heard[to].get_mut(of_one.sender as usize) {
                *cell = *of_one;
            }
        }
    }

    /// Datagrams that a host sent.
    pub fn sent(&self, from: usize) -> u32 {
        self.sent[from]
    }

    /// The datagrams of `from` that `to` heard.
    pub fn heard(&self, from: usize, to: usize) -> Heard {
        self.heard[to][from]
    }

    /// True if `to` heard nothing of what `from` sent.
    pub fn is_silent(&self, from: usize, to: usize) -> bool {
        self.sent[from] > 0 && self.heard(from, to).datagrams == 0
    }

    /// Lost datagrams in percent of those sent; `None` if nothing was sent.
    pub fn loss_percent(&self, from: usize, to: usize) -> Option<f64> {
        let sent = self.sent[from];
        let lost = sent.saturating_sub(self.heard(from, to).datagrams);
        (sent > 0).then(|| 100.0 * f64::from(lost) / f64::from(sent))
    }

    /// The pairs of sender and receiver for all that was sent, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let hosts = self.hosts();
        let senders = (0..hosts).filter(|from| self.sent[*from] > 0);
        senders.flat_map(move |from| (0..hosts).filter(move |to| *to != from).map(move |to| (from, to)))
    }

    /// The pairs of which nothing arrived.
    pub fn silent_pairs(&self) -> Vec<(usize, usize)> {
        self.pairs().filter(|&(from, to)| self.is_silent(from, to)).collect()
    }
}

/// A matrix in which all hear all but these pairs.
#[cfg(test)]
pub fn all_but(hosts: usize, silent: &[(usize, usize)]) -> Matrix {
    let mut matrix = Matrix::new(hosts);
    for host in 0..hosts {
        matrix.set_sent(host, 100);
    }
    for to in 0..hosts {
        let senders = (0..hosts).filter(|from| !silent.contains(&(*from, to)));
        let heard: Vec<Heard> =
            senders.map(|from| Heard { sender: from as u32, datagrams: 100, ..Heard::default() }).collect();
        matrix.set_heard(to, &heard);
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_per_pair() {
        let mut matrix = all_but(3, &[(0, 2)]);
        matrix.set_heard(1, &[Heard { sender: 0, datagrams: 75, ..Heard::default() }]);
        assert_eq!(matrix.silent_pairs(), [(0, 2)]);
        assert_eq!(matrix.loss_percent(0, 1), Some(25.0));
        assert_eq!(matrix.loss_percent(0, 2), Some(100.0));
        assert_eq!(matrix.loss_percent(1, 2), Some(0.0));
        matrix.set_sent(1, 0);
        assert_eq!(matrix.loss_percent(1, 2), None);
        assert_eq!(matrix.pairs().count(), 4);
        matrix.set_heard(1, &[Heard { sender: 99, ..Heard::default() }]);
    }
}
