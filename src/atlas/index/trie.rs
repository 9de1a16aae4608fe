//! A prefix tree: finds every key that is a prefix of a text in one pass.

use std::ops::Range;

/// Values stored under keys, found by texts that start with those keys.
///
/// The cost of a walk depends on the text and the hits, not on the size of the tree.
#[derive(Debug)]
pub(super) struct Trie<T> {
    nodes: Vec<TrieNode>,
    /// The label bytes of all nodes, concatenated.
    labels: Vec<u8>,
    /// The branching bytes, sorted within each node, and their target nodes.
    steps: Vec<u8>,
    targets: Vec<u32>,
    values: Vec<T>,
}

#[derive(Debug, Default)]
struct TrieNode {
    /// Bytes that must match before the node is reached.
    label: Range<usize>,
    /// Branches of the node.
    steps: Range<usize>,
    /// Values of the key that ends at the node.
    values: Range<usize>,
}

/// Maximum number of branches for a linear search, which is faster than a binary search up to here.
const MAX_LINEAR_BRANCHES: usize = 16;

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            labels: Vec::new(),
            steps: Vec::new(),
            targets: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy> Trie<T> {
    /// Builds a tree of these keys. A key may occur several times.
    pub(super) fn new(mut keys: Vec<(Vec<u8>, T)>) -> Self {
        keys.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut trie = Self::default();
        if !keys.is_empty() {
            trie.add(&keys, 0);
        }
        trie
    }

    /// Calls `found` with every value whose key is a prefix of `text`, and with true if the text ends there.
    pub(super) fn walk(
        &self,
        mut text: impl ExactSizeIterator<Item = u8>,
        mut found: impl FnMut(T, bool),
    ) {
        let mut next = self.nodes.first();
        while let Some(node) = next {
            let label = self.labels.get(node.label.clone()).unwrap_or_default();
            if text.len() < label.len() || !label.iter().all(|byte| text.next() == Some(*byte)) {
                return;
            }
            let is_end = text.len() == 0;
            for value in self.values.get(node.values.clone()).unwrap_or_default() {
                found(*value, is_end);
            }
            next = text.next().and_then(|byte| self.step(node, byte));
        }
    }

    fn step(&self, node: &TrieNode, byte: u8) -> Option<&TrieNode> {
        let steps = self.steps.get(node.steps.clone())?;
        let at = if steps.len() <= MAX_LINEAR_BRANCHES {
            steps.iter().position(|step| *step == byte)?
        } else {
            steps.binary_search(&byte).ok()?
        };
        let target = self.targets.get(node.steps.start + at)?;
        self.nodes.get(usize::try_from(*target).ok()?)
    }

    /// Adds the node of sorted keys that share their first `depth` bytes.
    fn add(&mut self, keys: &[(Vec<u8>, T)], depth: usize) -> usize {
        let rest = |(key, _): &(Vec<u8>, T)| key.get(depth..).unwrap_or_default().to_vec();
        let (first, last) = (keys.first().map(rest), keys.last().map(rest));
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        // The keys are sorted: all share what the first and the last have in common.
        let common = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
        let depth = depth + common;

        let label = self.labels.len()..self.labels.len() + common;
        self.labels.extend(first.iter().take(common));
        let ended = keys.iter().take_while(|(key, _)| key.len() == depth);
        let values_start = self.values.len();
        self.values.extend(ended.map(|(_, value)| *value));
        let values = values_start..self.values.len();
        let at = self.nodes.len();
        self.nodes.push(TrieNode::default());

        let going_on = keys.get(values.len()..).unwrap_or_default();
        let mut steps = Vec::new();
        for group in going_on.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth)) {
            let byte = group.first().and_then(|(key, _)| key.get(depth));
            if let Some(byte) = byte {
                steps.push((*byte, self.add(group, depth + 1)));
            }
        }
        let start = self.steps.len();
        for (byte, target) in steps {
            self.steps.push(byte);
            // INVARIANT: an Atlas has far fewer bytes than `u32` has values; a larger number refers to no node.
            self.targets.push(u32::try_from(target).unwrap_or(u32::MAX));
        }
        if let Some(node) = self.nodes.get_mut(at) {
            *node = TrieNode {
                label,
                steps: start..self.steps.len(),
                values,
            };
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn trie_finds_every_prefix_once(
            keys in prop::collection::vec("[ab.é]{0,4}", 0..20),
            text in "[ab.é]{0,6}",
        ) {
            let values = keys.iter().enumerate();
            let trie = Trie::new(values.map(|(at, key)| (key.as_bytes().to_vec(), at)).collect());
            let mut found = Vec::new();
            trie.walk(text.bytes(), |at, is_end| found.push((at, is_end)));
            found.sort_unstable();
            let wanted: Vec<_> = keys
                .iter()
                .enumerate()
                .filter(|(_, key)| text.starts_with(key.as_str()))
                .map(|(at, key)| (at, *key == text))
                .collect();
            prop_assert_eq!(found, wanted);
        }
    }
}
