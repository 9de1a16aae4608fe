//! Serde serializer that passes values to the writer.

use serde::ser::{self, Serialize};
use smallvec::SmallVec;

use super::{
    CanonicalWriteError, CanonicalWriter, ListWriter, ObjectWriter, WriteResult, write, write_text,
};

impl<'o> ser::Serializer for CanonicalWriter<'o> {
    type Ok = ();
    type Error = CanonicalWriteError;
    type SerializeSeq = ListWriter<'o>;
    type SerializeTuple = ListWriter<'o>;
    type SerializeTupleStruct = ListWriter<'o>;
    type SerializeTupleVariant = ser::Impossible<(), CanonicalWriteError>;
    type SerializeMap = ObjectWriter<'o>;
    type SerializeStruct = ObjectWriter<'o>;
    type SerializeStructVariant = ObjectWriter<'o>;

    fn serialize_bool(self, value: bool) -> WriteResult {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> WriteResult {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> WriteResult {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> WriteResult {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> WriteResult {
        self.integer(value.unsigned_abs(), value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> WriteResult {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> WriteResult {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> WriteResult {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> WriteResult {
        self.integer(value, value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> WriteResult {
        self.double(value.into())
    }

    fn serialize_f64(self, value: f64) -> WriteResult {
        self.double(value)
    }

    fn serialize_char(self, value: char) -> WriteResult {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> WriteResult {
        write_text(value, self.out);
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> WriteResult {
        Err(CanonicalWriteError)
    }

    fn serialize_none(self) -> WriteResult {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> WriteResult {
        value.serialize(self)
    }

    fn serialize_unit(self) -> WriteResult {
        self.out.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> WriteResult {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> WriteResult {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> WriteResult {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> WriteResult {
        let mut object = self.serialize_map(None)?;
        object.field(variant, value)?;
        object.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<ListWriter<'o>, CanonicalWriteError> {
        self.out.push('[');
        let first = true;
        Ok(ListWriter {
            out: self.out,
            first,
        })
    }

    fn serialize_tuple(self, length: usize) -> Result<ListWriter<'o>, CanonicalWriteError> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<ListWriter<'o>, CanonicalWriteError> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, CanonicalWriteError> {
        Err(CanonicalWriteError)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<ObjectWriter<'o>, CanonicalWriteError> {
        self.out.push('{');
        Ok(ObjectWriter {
            start: self.out.len(),
            out: self.out,
            fields: SmallVec::new(),
            sorted: true,
            wrapped: false,
        })
    }

    fn serialize_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<ObjectWriter<'o>, CanonicalWriteError> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ObjectWriter<'o>, CanonicalWriteError> {
        self.out.push('{');
        write_text(variant, self.out);
        self.out.push(':');
        let mut object = self.serialize_map(Some(length))?;
        object.wrapped = true;
        Ok(object)
    }
}

impl ser::SerializeSeq for ListWriter<'_> {
    type Ok = ();
    type Error = CanonicalWriteError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> WriteResult {
        self.item(value)
    }

    fn end(self) -> WriteResult {
        self.close();
        Ok(())
    }
}

impl ser::SerializeTuple for ListWriter<'_> {
    type Ok = ();
    type Error = CanonicalWriteError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> WriteResult {
        self.item(value)
    }

    fn end(self) -> WriteResult {
        self.close();
        Ok(())
    }
}

impl ser::SerializeTupleStruct for ListWriter<'_> {
    type Ok = ();
    type Error = CanonicalWriteError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> WriteResult {
        self.item(value)
    }

    fn end(self) -> WriteResult {
        self.close();
        Ok(())
    }
}

impl ser::SerializeMap for ObjectWriter<'_> {
    type Ok = ();
    type Error = CanonicalWriteError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> WriteResult {
        self.name(|out| write(key, out))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> WriteResult {
        self.value(value)
    }

    fn end(self) -> WriteResult {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStruct for ObjectWriter<'_> {
    type Ok = ();
    type Error = CanonicalWriteError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> WriteResult {
        self.field(key, value)
    }

    fn end(self) -> WriteResult {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStructVariant for ObjectWriter<'_> {
    type Ok = ();
    type Error = CanonicalWriteError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> WriteResult {
        self.field(key, value)
    }

    fn end(self) -> WriteResult {
        self.close();
        Ok(())
    }
}
