//! Choices and texts out of bytes. When the bytes are used up, every choice is the first one.

pub(crate) struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(left: &'a [u8]) -> Self {
        Self { left }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.left.split_first() {
            Some((first, rest)) => {
                self.left = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let number = u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()]);
        number as usize % limit.max(1)
    }

    /// One of them.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// As much as the next byte says.
    pub(crate) fn some(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.left.len());
        let (some, rest) = self.left.split_at(length);
        self.left = rest;
        some
    }

    /// The same as text.
    pub(crate) fn words(&mut self) -> String {
        String::from_utf8_lossy(self.some()).into_owned()
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    /// The same as text.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.rest()).into_owned()
    }
}
