//! The one door for the directories and files of the product, closed to other users of the machine.

mod directory;
mod own;
mod rotated;

pub use directory::make_directory;
pub use own::{
    Opening, directory, given_directory, given_file, new_directory, public_directory, subdirectory,
};
pub use rotated::Rotated;
