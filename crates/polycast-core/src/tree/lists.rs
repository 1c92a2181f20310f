/// Many short lists in two allocations, however many there are.
#[derive(Clone, Debug)]
pub struct Lists<T> {
    /// The end of each list in `entries`; the next list begins there.
    ends: Box<[u32]>,
    entries: Box<[T]>,
}

impl<T> Lists<T> {
    /// Makes `lists` lists of entries, each given with the index of its list. Entries of one list
    /// keep their order.
    pub fn new(lists: usize, entries: impl Iterator<Item = (usize, T)>) -> Lists<T> {
        let mut entries: Vec<(usize, T)> = entries.collect();
        entries.sort_by_key(|(list, _)| *list);
        let end = |list| entries.partition_point(|(of, _)| *of <= list) as u32;
        Lists {
            ends: (0..lists).map(end).collect(),
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }

    fn range(&self, list: usize) -> std::ops::Range<usize> {
        let begin = if list == 0 { 0 } else { self.ends[list - 1] };
        begin as usize..self.ends[list] as usize
    }

    /// The entries of a list.
    pub fn of(&self, list: usize) -> &[T] {
        &self.entries[self.range(list)]
    }

    /// The entries of a list, to be put into another order.
    pub fn of_mut(&mut self, list: usize) -> &mut [T] {
        let range = self.range(list);
        &mut self.entries[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_in_each_list() {
        let entries = [(3, 'a'), (0, 'b'), (3, 'c'), (1, 'd'), (3, 'e')];
        let mut lists = Lists::new(5, entries.into_iter());
        let all =
            |lists: &Lists<char>| (0..5).map(|list| lists.of(list).iter().collect::<String>()).collect();
        let told: Vec<String> = all(&lists);
        assert_eq!(told, ["b", "d", "", "ace", ""]);
        lists.of_mut(3).reverse();
        let told: Vec<String> = all(&lists);
        assert_eq!(told, ["b", "d", "", "eca", ""]);
    }
}
