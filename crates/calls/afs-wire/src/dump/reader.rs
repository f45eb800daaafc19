//! Streaming parser of a dump.

use super::item::{gather, length, number};
use super::tags::{self, Form, SPARSE_TAG, Section, Tag};
use super::{
    BEGIN_MAGIC, DIRECTORY_LEN_MAX, DUMP_SECTION, DumpError, DumpHeader, END_MAGIC, END_SECTION, FIRST_TAG,
    LINK_LEN_MAX, Problem, VERSION, VNODE_SECTION, VOLUME_SECTION, VnodeFields, VolumeFields,
};
use crate::fs::FileKind;
use crate::ids::{Uniquifier, VnodeId};

/// An event of the parser.
///
/// A dump is `Dump`, then parts of `Volume` and vnodes, then `End`. A vnode is `Vnode`, perhaps `Length` and that
/// many bytes as `Data` and `Hole`, and `VnodeEnd`. `Ignored` may occur anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The dump's header.
    Dump(DumpHeader),
    /// A volume's header. Merged dumps have several, the newest last.
    Volume(Box<VolumeFields>),
    /// A vnode begins.
    Vnode(VnodeId, Uniquifier),
    /// Its data begin, with this length in bytes.
    Length(u64),
    /// The next bytes of its data; never empty.
    Data(&'a [u8]),
    /// The next bytes of its data, this many zeros; never none.
    Hole(u64),
    /// The vnode ends.
    VnodeEnd(VnodeEnd),
    /// An item at this position of the dump was skipped.
    Ignored(u64, Ignored),
    /// The dump ends. Any byte after it is an error.
    End,
}

/// Kind of a vnode's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VnodeEnd {
    /// The vnode exists and is unchanged.
    Bare,
    /// The vnode's status. Without data its length is 0.
    Full(Box<VnodeFields>),
}

/// Kind of a skipped item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// An unknown tag.
    Tag(u8),
    /// A second set of data of one vnode.
    SecondData,
}

/// Parses a dump from pieces of any size.
///
/// Call [`DumpReader::next`] until it returns `None`, which is when the piece is used up; then pass the next piece.
/// At the end of the stream, [`DumpReader::finish`] tells whether the dump was complete.
#[derive(Debug)]
pub struct DumpReader {
    state: State,
    section: Section,
    item: Vec<u8>,
    /// Bytes taken so far.
    offset: u64,
    /// Position of the current item, or of the tag before it.
    began: u64,
    /// The next tag must be a known one.
    critical: bool,
    dump: DumpHeader,
    volume: VolumeFields,
    vnode: Vnode,
}

#[derive(Clone, Debug)]
enum State {
    Begin,
    /// A tag or the byte of the next section.
    Tag,
    Value(u8, Form),
    Unknown(u8, Form),
    Skip(u64),
    /// This many bytes of data, followed by the rest of a file with holes.
    Data(u64, Option<u64>),
    /// A piece of a file with holes, of which this much is missing.
    Piece(u64),
    Numbers,
    EndMark,
    Ended,
    Failed(DumpError),
}

/// The vnode being read.
#[derive(Debug, Default)]
struct Vnode {
    number: VnodeId,
    began: u64,
    fields: VnodeFields,
    full: bool,
    length: Option<u64>,
}

impl Default for DumpReader {
    fn default() -> Self {
        Self {
            state: State::Begin,
            section: Section::Dump,
            item: Vec::new(),
            offset: 0,
            began: 0,
            critical: false,
            dump: DumpHeader::default(),
            volume: VolumeFields::default(),
            vnode: Vnode::default(),
        }
    }
}

impl DumpReader {
    /// Takes bytes from the front of `input` up to the next event, or all of them and returns `None`.
    ///
    /// # Errors
    /// [`DumpError`]; the same again from then on.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, DumpError> {
        loop {
            let before = input.len();
            let step = self.step(input);
            self.offset += (before - input.len()) as u64;
            match step {
                Ok(Step::Event(event)) => return Ok(Some(event)),
                Ok(Step::Starved) => return Ok(None),
                Ok(Step::On) => {}
                Err(problem) => return Err(self.fail(problem)),
            }
        }
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Checks at the end of the stream that the dump is complete.
    ///
    /// # Errors
    /// [`Problem::Cut`], or the error of [`DumpReader::next`].
    pub fn finish(&self) -> Result<(), DumpError> {
        match &self.state {
            State::Ended => Ok(()),
            State::Failed(error) => Err(error.clone()),
            _ => Err(DumpError { offset: self.offset, problem: Problem::Cut }),
        }
    }

    fn fail(&mut self, problem: Problem) -> DumpError {
        if let State::Failed(error) = &self.state {
            return error.clone();
        }
        let error = DumpError { offset: self.began, problem };
        self.state = State::Failed(error.clone());
        error
    }

    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Step<'a>, Problem> {
        match self.state.clone() {
            State::Begin => self.whole(Form::Fixed(9), 0, input, Self::begin),
            State::Tag => self.tag(input),
            State::Value(tag, form) => self.whole(form, tag, input, |reader| reader.value(tag, form)),
            State::Unknown(tag, form) => self.whole(form, tag, input, |reader| reader.unknown(tag, form)),
            State::Skip(left) => self.skip(left, input),
            State::Data(left, behind) => self.data(left, behind, input),
            State::Piece(missing) => {
                self.whole(Form::Fixed(16), SPARSE_TAG, input, |reader| reader.piece(missing))
            }
            State::Numbers => self.whole(Form::Fixed(8), 0, input, Self::numbers),
            State::EndMark => self.whole(Form::Fixed(4), 0, input, Self::end),
            State::Ended if input.is_empty() => Ok(Step::Starved),
            State::Ended => {
                self.began = self.offset;
                Err(Problem::AfterEnd)
            }
            State::Failed(error) => Err(error.problem),
        }
    }

    /// Assembles an item and processes it once it is complete.
    fn whole<'a>(
        &mut self,
        form: Form,
        tag: u8,
        input: &mut &'a [u8],
        then: impl FnOnce(&mut Self) -> Result<Step<'a>, Problem>,
    ) -> Result<Step<'a>, Problem> {
        if !gather(&mut self.item, form, tag, input)? {
            return Ok(Step::Starved);
        }
        let step = then(self)?;
        self.item.clear();
        Ok(step)
    }

    fn begin<'a>(&mut self) -> Result<Step<'a>, Problem> {
        let word = |at: usize| number(self.item.get(at..).unwrap_or_default());
        if self.item.first() != Some(&DUMP_SECTION) || word(1) != BEGIN_MAGIC {
            return Err(Problem::NotADump);
        }
        if word(5) != VERSION {
            return Err(Problem::Version(word(5)));
        }
        self.state = State::Tag;
        Ok(Step::On)
    }

    fn tag<'a>(&mut self, input: &mut &'a [u8]) -> Result<Step<'a>, Problem> {
        let Some((&byte, rest)) = input.split_first() else { return Ok(Step::Starved) };
        self.began = self.offset;
        *input = rest;
        if byte < FIRST_TAG {
            return self.next_section(byte);
        }
        let critical = std::mem::take(&mut self.critical);
        match tags::tag(self.section, byte).ok_or(Problem::Tag(byte))? {
            Tag::Known(form) => self.state = State::Value(byte, form),
            Tag::Critical => self.critical = true,
            Tag::Unknown(_) if critical => return Err(Problem::Critical(byte)),
            Tag::Unknown(form) => self.state = State::Unknown(byte, form),
        }
        Ok(Step::On)
    }

    /// Returns the contents of the section that ends, and begins the next.
    fn next_section<'a>(&mut self, byte: u8) -> Result<Step<'a>, Problem> {
        // A dump has at least one volume part.
        let possible = byte == VOLUME_SECTION
            || self.section != Section::Dump && matches!(byte, VNODE_SECTION | END_SECTION);
        if !possible || self.critical {
            return Err(Problem::Section(byte));
        }
        let event = match self.section {
            Section::Dump => Event::Dump(self.end_of_header()?),
            Section::Volume => Event::Volume(Box::new(std::mem::take(&mut self.volume))),
            Section::Vnode => Event::VnodeEnd(self.end_of_vnode()?),
        };
        (self.section, self.state) = match byte {
            VOLUME_SECTION => (Section::Volume, State::Tag),
            VNODE_SECTION => (Section::Vnode, State::Numbers),
            _ => (self.section, State::EndMark),
        };
        Ok(Step::Event(event))
    }

    fn end_of_header(&mut self) -> Result<DumpHeader, Problem> {
        let header = std::mem::take(&mut self.dump);
        if header.volume.0 == 0 {
            return Err(Problem::Incomplete("which volume it is of"));
        }
        if header.spans.is_empty() {
            return Err(Problem::Incomplete("of what time it is"));
        }
        Ok(header)
    }

    fn end_of_vnode(&mut self) -> Result<VnodeEnd, Problem> {
        let Vnode { number, began, fields, full, length } = std::mem::take(&mut self.vnode);
        match length {
            Some(length) if fields.kind == FileKind::Symlink && length > LINK_LEN_MAX => {
                self.began = began;
                Err(Problem::LinkTooLong { vnode: number.0, length })
            }
            _ if full => Ok(VnodeEnd::Full(Box::new(fields))),
            _ => Ok(VnodeEnd::Bare),
        }
    }

    fn value<'a>(&mut self, tag: u8, form: Form) -> Result<Step<'a>, Problem> {
        self.state = State::Tag;
        match (self.section, form) {
            (Section::Dump, Form::Array) if self.item.len() % 8 != 2 => {
                return Err(Problem::Array(number(self.item.get(..2).unwrap_or_default()) as u16));
            }
            (Section::Dump, _) => self.dump.set(tag, &self.item),
            (Section::Volume, _) => self.volume.set(tag, &self.item),
            (Section::Vnode, form) => {
                self.vnode.full = true;
                match form {
                    Form::Length32 | Form::Length64 => return self.begin_data(length(&self.item, form)),
                    Form::Sparse => return self.begin_pieces(length(&self.item, form)),
                    _ => {}
                }
                self.vnode.fields.set(self.vnode.number, tag, &self.item)?;
            }
        }
        Ok(Step::On)
    }

    fn begin_data<'a>(&mut self, length: u64) -> Result<Step<'a>, Problem> {
        if self.vnode.length.is_some() {
            self.state = State::Skip(length);
            return Ok(Step::Event(Event::Ignored(self.began, Ignored::SecondData)));
        }
        let vnode = self.vnode.number;
        if vnode.is_directory() && length > DIRECTORY_LEN_MAX {
            return Err(Problem::DirectoryTooLong { vnode: vnode.0, length });
        }
        self.vnode.length = Some(length);
        self.state = State::Data(length, None);
        Ok(Step::Event(Event::Length(length)))
    }

    fn begin_pieces<'a>(&mut self, length: u64) -> Result<Step<'a>, Problem> {
        let vnode = self.vnode.number;
        // The tag does not tell the length of the second data, which would have to be skipped.
        if vnode.is_directory() || self.vnode.length.is_some() {
            return Err(Problem::Sparse { vnode: vnode.0, what: "cannot have data with holes here" });
        }
        self.vnode.length = Some(length);
        self.state = Self::after_piece(length);
        Ok(Step::Event(Event::Length(length)))
    }

    fn piece<'a>(&mut self, missing: u64) -> Result<Step<'a>, Problem> {
        let (hole, data) = self.item.split_at_checked(8).ok_or(Problem::Cut)?;
        let (hole, data) = (length(hole, Form::Length64), length(data, Form::Length64));
        let vnode = self.vnode.number.0;
        let piece = hole.checked_add(data).filter(|piece| *piece > 0);
        let piece = piece.ok_or(Problem::Sparse { vnode, what: "has an impossible piece of data" })?;
        let behind = missing.checked_sub(piece);
        let behind = behind.ok_or(Problem::Sparse { vnode, what: "has more data than it says" })?;
        self.state = State::Data(data, Some(behind));
        Ok(if hole > 0 { Step::Event(Event::Hole(hole)) } else { Step::On })
    }

    fn after_piece(missing: u64) -> State {
        if missing == 0 { State::Tag } else { State::Piece(missing) }
    }

    fn unknown<'a>(&mut self, tag: u8, form: Form) -> Result<Step<'a>, Problem> {
        self.state = match form {
            Form::Length => State::Skip(length(&self.item, form)),
            _ => State::Tag,
        };
        Ok(Step::Event(Event::Ignored(self.began, Ignored::Tag(tag))))
    }

    fn skip<'a>(&mut self, left: u64, input: &mut &'a [u8]) -> Result<Step<'a>, Problem> {
        let taken = take(left, input).len() as u64;
        self.state = if taken == left { State::Tag } else { State::Skip(left - taken) };
        Ok(if taken == left { Step::On } else { Step::Starved })
    }

    fn data<'a>(
        &mut self,
        left: u64,
        behind: Option<u64>,
        input: &mut &'a [u8],
    ) -> Result<Step<'a>, Problem> {
        let data = take(left, input);
        let left = left - data.len() as u64;
        self.state =
            if left == 0 { Self::after_piece(behind.unwrap_or(0)) } else { State::Data(left, behind) };
        Ok(match data {
            [] if left == 0 => Step::On,
            [] => Step::Starved,
            data => Step::Event(Event::Data(data)),
        })
    }

    fn numbers<'a>(&mut self) -> Result<Step<'a>, Problem> {
        let (number, unique) = (number(&self.item), number(self.item.get(4..).unwrap_or_default()));
        self.vnode = Vnode { number: VnodeId(number), began: self.began, ..Vnode::default() };
        self.state = State::Tag;
        Ok(Step::Event(Event::Vnode(VnodeId(number), Uniquifier(unique))))
    }

    fn end<'a>(&mut self) -> Result<Step<'a>, Problem> {
        if number(&self.item) != END_MAGIC {
            return Err(Problem::EndMark);
        }
        self.state = State::Ended;
        Ok(Step::Event(Event::End))
    }
}

enum Step<'a> {
    Event(Event<'a>),
    On,
    Starved,
}

fn take<'a>(left: u64, input: &mut &'a [u8]) -> &'a [u8] {
    let len = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    let (now, later) = input.split_at(len);
    *input = later;
    now
}
