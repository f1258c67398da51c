"""Files in Protobuf's .proto language that protoc accepts: one for each part of the language."""

from __future__ import annotations

IMPORTED = {
    "common.proto": """
        syntax = "proto3";
        package shop.common;
        message Money { int64 units = 1; enum Currency { EUR = 0; CHF = 1; }
          Currency currency = 2; }
        enum Country { UNKNOWN = 0; AT = 43; CH = 41; }
        message Outer { message Inner { int32 x = 1; } }
        """,
    "public.proto": 'syntax = "proto3"; package shop; import public "common.proto"; message P {}',
    "twice_public.proto": 'import public "public.proto";',
    "plain.proto": 'syntax = "proto3"; message common { int32 x = 1; } message S {}',
    "options.proto": """
        syntax = "proto2";
        package custom;
        import "google/protobuf/descriptor.proto";
        message Rule {
          optional string name = 1; repeated int32 numbers = 2; optional Rule inner = 3;
          map<string, int32> sizes = 4; extensions 100 to 200;
        }
        extend Rule { optional string more = 100; }
        extend google.protobuf.FileOptions { optional Rule file = 50000; }
        extend google.protobuf.MessageOptions { optional Rule message = 50000; }
        extend google.protobuf.FieldOptions {
          optional Rule field = 50000; optional double size = 50001; repeated string tags = 50002;
          optional bytes raw = 50003;
        }
        extend google.protobuf.OneofOptions { optional int32 oneof = 50000; }
        extend google.protobuf.EnumOptions { optional bool enum = 50000; }
        extend google.protobuf.EnumValueOptions { optional string value = 50000; }
        extend google.protobuf.ServiceOptions { optional string service = 50000; }
        extend google.protobuf.MethodOptions { optional Rule method = 50000; }
        extend google.protobuf.ExtensionRangeOptions { optional string range = 50000; }
        """,
}

_TWO, _THREE = 'syntax = "proto2";', 'syntax = "proto3";'
_E23, _E24 = 'edition = "2023";', 'edition = "2024";'

TEXTS = {
    # Files.
    "empty": "",
    "no syntax is proto2": "message A { optional int32 a = 1; required A b = 2; }",
    "single quotes": "syntax = 'proto3'; message A { int32 a = 1; }",
    "adjacent literals": """syntax = "pro" 'to' "3"; import "com" 'mon' ".proto"; message A {}""",
    "escapes in a path": f'{_THREE} import "\\143o\\x6dmon.proto"; message A {{}}',
    "byte order mark": f"\ufeff{_THREE} message A {{ int32 a = 1; }}",
    "carriage returns": f"{_THREE}\r\nmessage A {{\r\n  int32 a = 1; // b\r\n}}\r\n",
    "white space": f"{_THREE}\tmessage\v A\f{{ int32 a=1;int32\n\nb\n=\n2\n; }}",
    "empty statements": ";;; package a;; message A { ;; optional int32 a = 1;; };",
    "comments": f"""
        // before the syntax; with "quotes"
        {_THREE} /**/ /***/ /* message B {{}} */
        message /* here */ A {{ // "
          int32 /* and // here */ a /* * / */ = 1 /* ' */; // é, \U0001f600
        }} // the end of the text""",
    "package last": f"{_THREE} message A {{ B b = 1; a.c.B c = 2; }} message B {{}} package a.c;",
    "package with spaces": f"{_THREE} package a . b /**/ .c; message A {{ .a . b.c.A x = 1; }}",
    "all kinds of options": f"""{_THREE}
        option java_package = "a.b"; option java_multiple_files = true; option optimize_for = SPEED;
        option cc_enable_arenas = true; option php_namespace = "A" "\\\\B" '\\'';
        message A {{ option deprecated = true; int32 a = 1; }}""",
    # Fields.
    "every scalar": _THREE
    + "message A { double a = 1; float b = 2; int32 c = 3; int64 d = 4; uint32 e = 5; uint64 f = 6;"
    " sint32 g = 7; sint64 h = 8; fixed32 i = 9; fixed64 j = 10; sfixed32 k = 11; sfixed64 l = 12;"
    " bool m = 13; string n = 14; bytes o = 15; repeated string p = 16; optional bytes q = 17; }",
    "labels of proto2": f"{_TWO} message A {{ required int32 a = 1; optional A b = 2;"
    " repeated A c = 3; repeated int32 d = 4 [packed = true]; optional string e = 5; }",
    "presence in proto3": f"{_THREE} message A {{ int32 a = 1; optional int32 b = 2; A c = 3;"
    " optional A d = 4; repeated int32 e = 5; oneof f { int32 g = 6; A h = 7; } E i = 8;"
    " optional E j = 9; } enum E { Z = 0; }",
    "numbers in every base": f"{_THREE} message A {{ int32 a = 0x10; int32 b = 017; int32 c = 9;"
    " int32 d = 536870911; int32 e = 0X1F; int32 f = 18999; int32 g = 20000; }",
    "numbers out of order": f"{_THREE} message A {{ int32 c = 7; int32 a = 3; int32 b = 5; }}",
    "defaults": f"""{_TWO} enum E {{ A = 1; B = -1; }} message M {{
        optional int32 a = 1 [default = -5]; optional int32 b = 2 [default = 0x7f];
        optional double c = 3 [default = -inf]; optional float d = 4 [default = nan];
        optional double e = 5 [default = 1.5e+10]; optional double f = 6 [default = .5];
        optional double g = 7 [default = 1.]; optional double h = 8 [default = -1e-3];
        optional string i = 9 [default = "a\\"]\\n" 'b; //' "\\u00e9\\U0001f600"];
        optional bytes j = 10 [default = "\\377\\xff\\0"]; optional bool k = 11 [default = true];
        optional E l = 12 [default = B];
          optional uint64 m = 13 [default = 18446744073709551615]; }}""",
    "options of a field": f"{_TWO} message A {{ repeated int32 a = 1 [packed = true,"
    ' json_name = "b", deprecated = false]; optional string c = 2 [ctype = CORD];'
    " optional A d = 3 [lazy=true]; }",
    "names that are keywords": f"""{_THREE}
        message message {{
          int32 message = 1; int32 enum = 2; int32 optional = 3; int32 repeated = 4;
          int32 required = 5; int32 map = 6; int32 oneof = 7; int32 reserved = 8; int32 group = 9;
          int32 extensions = 10; int32 extend = 11; int32 option = 12; int32 syntax = 13;
          int32 package = 14; int32 import = 15; int32 returns = 16; int32 rpc = 17; int32 to = 18;
          int32 max = 19; int32 string = 20; int32 true = 21; int32 inf = 22; int32 stream = 23;
          .message self = 24; int32 public = 25; int32 export = 26; int32 local = 27;
          int32 edition = 28; int32 service = 29;
        }}
        enum option {{ option_ = 0; import = 1; package = 2; message_ = 3; syntax = 4; }}""",
    "types that are keywords": f"""{_THREE}
        message map {{ int32 x = 1; }} message syntax {{}} message import {{}} enum to {{
          to_ = 0; }}
        message package {{}} message max {{}} message rpc {{}} message optional {{}}
        message M {{
          map a = 1; syntax b = 2; import c = 3; to d = 4; package e = 5; max f = 6; rpc g = 7;
          map<string, map> h = 8; repeated map i = 9; optional optional j = 10; .optional k = 11;
          optional map l = 12; oneof m {{ map n = 13; syntax o = 14; }}
        }}""",
    "map as the start of a name": f"{_THREE} message map {{ message M {{}} }} message A {{"
    f" .map.M a = 1; }}",
    # Maps, oneofs and groups.
    "maps of every key": f"""{_THREE} message A {{ map<int32, A> a = 1; map<int64, A> b = 2;
        map<uint32, A> c = 3; map<uint64, A> d = 4; map<sint32, A> e = 5; map<sint64, A> f = 6;
        map<fixed32, A> g = 7; map<fixed64, A> h = 8; map<sfixed32, A> i = 9; map<bool, A> j = 10;
        map<sfixed64, A> k = 11; map<string, A> l = 12; }}""",
    "maps of every value": f"{_THREE} enum E {{ Z = 0; }} message A {{ map<string, double> a = 1;"
    " map < string , bytes > b = 2; map<int32, E> c = 3; map<int32, A> d = 4 [deprecated = true];"
    " map<bool, .A> e = 5; }",
    "map in proto2": f"{_TWO} enum E {{ Z = 0; }} message A {{ map<int32, int32> a = 1;"
    " map<string, E> b = 2; map<string, A> c = 3; }",
    "names of entries": f"{_THREE} message A {{ map<int32, int32> unit_price = 1;"
    " map<int32, int32> __x_9y_ = 2; map<int32, int32> fooBar = 3; map<int32, int32> X = 4;"
    " map<int32, int32> a__b = 5; }",
    "entries among messages": f"{_THREE} message A {{ message B {{}} map<int32, B> m = 1;"
    " message C { map<int32, int32> n = 1; message D {} } map<int32, C> o = 2; message E {} }",
    "oneofs": f"{_THREE} message A {{ int32 a = 1; oneof b {{"
    " int32 c = 2; A d = 3; string e = 4; } int32 f = 5; oneof g { bytes h = 6; } }",
    "groups": f"""{_TWO} message A {{
        optional group B = 1 {{ optional int32 x = 1; optional group C = 2 {{
          required C y = 1; }} }}
        message D {{}} repeated group EeE = 2 [deprecated = true] {{ message F {{}}
          optional F f = 1; }}
        required group G = 3 {{}} oneof o {{ group H = 4 {{ optional H h = 1; }} int32 i = 5; }}
        map<int32, B> b_map = 6; optional B again = 7; }}""",
    # Enums.
    "enums": f"{_TWO} enum A {{ B = 1; C = -2; D = 0x7fffffff; E = -2147483648; F = -0x10;"
    f" G = 017; }}"
    " message M { optional A a = 1; }",
    "aliases": f"{_THREE} message M {{ A a = 1; enum A {{ Z = 0; ONE = 1; EINS = 1; UN = 1;"
    " option allow_alias = true; NULL = 0; TWO = 2 [deprecated = true]; } }",
    "an enum's reserved": f"{_THREE} enum A {{ Z = 0; reserved 5, 7 to 9, -3 to -1, 100 to max;"
    ' reserved "X", "Y" "Z"; } message M { A a = 1; }',
    "values belong to the scope around": f"{_THREE} message A {{ enum B {{ X = 0; }} B b = 1; }}"
    " message C { enum B { X = 0; } B b = 1; } enum D { X = 0; } message E { D d = 1; }",
    # Names.
    "innermost scope first": f"""{_THREE} package a.b; message X {{ int32 outer = 1; }}
        message A {{ message X {{ int32 inner = 1; }} X x = 1; b.X y = 2; a.b.X z = 3; .a.b.X w = 4;
          A.X v = 5; message B {{ X x = 1; A.X y = 2; b.A.X z = 3; B w = 4; }} B2 u = 6;
          message B2 {{}} }}""",
    "a field does not hide a type": f"{_THREE} message B {{}} message A {{ B B = 1; B c = 2; }}",
    "a value does not hide a type": f"{_THREE} package p; message B {{ message C {{}} }}"
    " message A { enum E { B = 0; } B.C c = 1; B b = 2; }",
    "a package inside a package": f'{_THREE} package shop.common.x; import "common.proto";'
    " message A { common.Money a = 1; Money b = 2; shop.common.Outer.Inner c = 3;"
    " Outer.Inner d = 4; }",
    "a package or a service does not hide a type": f"""{_THREE} package shop;
        import "common.proto"; import "plain.proto"; service S {{}}
        message A {{ common a = 1; common.Money b = 2; S c = 3; }}""",
    "recursion": f"{_THREE} message A {{ A a = 1; B b = 2; map<int32, A> c = 3; }}"
    " message B { repeated A a = 1; }",
    "types before they are declared": f"{_THREE} message A {{ B.C.D a = 1; E b = 2; }}"
    " message B { message C { message D {} } } enum E { Z = 0; }",
    "the same short names": f"{_THREE} package a; message a {{ message a {{ a a = 1; }}"
    f" a b = 2; .a.a c = 3; }}",
    "a type beside a service": f"{_THREE} service S {{ rpc A(.A) returns (.A); }}"
    f" message A {{ A a = 1; }}",
    # Imports.
    "import": f'{_THREE} import "common.proto"; package x; message A {{ shop.common.Money a = 1;'
    " .shop.common.Country b = 2; repeated shop.common.Money.Currency c = 3; }",
    "public import": f'{_THREE} import "public.proto"; message A {{ shop.common.Money a = 1;'
    f" shop.P b = 2; }}",
    "public imports in a row": f'{_THREE} import "twice_public.proto"; message A {{'
    f" shop.common.Money a = 1; }}",
    "weak import": f'{_TWO} import weak "common.proto"; message A {{'
    f" optional shop.common.Money a = 1; }}",
    "import behind messages": f"{_THREE} message A {{ shop.common.Money a = 1; }}"
    f' import "common.proto";',
    "well-known types": f"""{_THREE}
        import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
        import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto";
        import "google/protobuf/any.proto"; import "google/protobuf/empty.proto";
        import "google/protobuf/field_mask.proto";
        package google.cloud;
        message A {{ protobuf.Timestamp a = 1; google.protobuf.Duration b = 2;
          google.protobuf.StringValue c = 3; google.protobuf.Value d = 4; protobuf.Any e = 5;
          google.protobuf.NullValue f = 6; .google.protobuf.FieldMask g = 7;
          repeated google.protobuf.Empty h = 8; map<string, google.protobuf.Struct> i = 9; }}""",
    "types of descriptor.proto": f'{_TWO} import "google/protobuf/descriptor.proto";'
    " message A { optional google.protobuf.FieldDescriptorProto.Type a = 1; }",
    # Ranges, extensions and services.
    "reserved": f"{_THREE} message A {{ reserved 2, 15, 9 to 11, 1000 to max;"
    f' reserved "foo", "b" "ar";'
    " int32 a = 1; reserved 0x20; }",
    "extension ranges": f"""{_TWO} message A {{ extensions 4, 20 to 30; extensions 100 to max;
        extensions 50 to 60 [verification = UNVERIFIED];
        extensions 70 [declaration = {{ number: 70, full_name: ".a.b", type: ".c.D" }}];
        optional int32 a = 1; }}""",
    "extend": f"""{_TWO} message A {{ extensions 10 to 99; }} extend A {{ optional int32 a = 10;
        repeated B b = 11; }} message B {{ extend A {{ optional B c = 12; }} extend .A {{
        optional string d = 13 [default = "x"]; }} optional int32 e = 1; }}""",
    "groups of extensions": f"""{_TWO} message A {{ extensions 10 to 99; }} message B {{
          message C {{}}
        extend A {{ optional group D = 10 {{ optional int32 x = 1; }} }} message E {{}} }}
        extend A {{ repeated group F = 11 {{ optional group G = 1 {{}} }} }} message H {{
        optional B.D d = 1; optional F f = 2; }}""",
    "services": f"""{_THREE} message A {{ int32 x = 1; }} service S {{
        option deprecated = true; rpc One(A) returns (A); ;
          rpc Two (stream .A) returns (stream A) {{}}
        rpc Three(A) returns (A) {{ option deprecated = true;
          option idempotency_level = IDEMPOTENT; ; }};
        }}""",
    "messages of sets": f"{_TWO} message A {{ option message_set_wire_format = true;"
    " extensions 4 to max; } message B { extend A { optional B b = 536870911; } }",
    # Custom options.
    "custom options": f"""{_THREE} import "options.proto"; package custom.inner;
        option (file).name = "a;}}"; option (.custom.file).inner.inner.name = 'b';
        option (custom.file).numbers = 1; option (custom.file).numbers = -2;
        message A {{
          option (message) = {{ name: "a" "b", numbers: [1, 2, -3], inner {{
          name: 'c}}' numbers: 5 }}
            sizes: {{ key: "k" value: 1 }}, [custom.more]: "d"; }};
          int32 a = 1 [(field) = {{}}, (size) = -1.5e3, (tags) = "a", (tags) = "b" 'c',
            (.custom.raw) = "\\xff"];
          int32 b = 2 [(field).name = "x", deprecated = true, (size) = inf, json_name = "bb"];
          oneof c {{ option (oneof) = -7; int32 d = 3 [(custom.size) = 0x1F]; }}
          enum E {{ option (enum) = true; Z = 0 [(value) = "]"]; }}
          E e = 4;
        }}
        service S {{ option (service) = "s";
          rpc B(A) returns (A) {{ option (method) = {{ inner: {{}} }}; }} }}
        """,
    "options of extension ranges": f'{_TWO} import "options.proto";'
    ' message A { extensions 4 to 5, 7 [(custom.range) = "a"]; optional int32 a = 1; }',
    "extending options here": f"""{_THREE} import "google/protobuf/descriptor.proto";
        extend google.protobuf.FieldOptions {{ string unit = 50100; Rule rule = 50101; }}
        message Rule {{ repeated int32 of = 1; }}
        message A {{ int32 a = 1 [(unit) = "kg", (rule) = {{ of: [1, 2] }}]; }}""",
    # Editions.
    "edition 2023": f"{_E23} message A {{ int32 a = 1; repeated int32 b = 2; A c = 3;"
    " map<string, int32> d = 4; oneof e { int32 f = 5; } E g = 6; } enum E { Z = 0; }",
    "presence in editions": f"""{_E23} message A {{
        int32 a = 1 [features.field_presence = IMPLICIT];
        int32 b = 2 [features.field_presence = EXPLICIT]; repeated int32 e = 3;
        int32 c = 4 [features.field_presence = LEGACY_REQUIRED]; A d = 5; }}""",
    "implicit presence of a file": f"""{_E23} package a; option features.field_presence = IMPLICIT;
        enum E {{ Z = 0; }} message A {{ int32 a = 1; E b = 2; A c = 3; oneof d {{ int32 e = 4; }}
        int32 f = 5 [features.field_presence = EXPLICIT]; map<int32, int32> g = 6; repeated E h = 7;
        message B {{ int32 a = 1; int32 b = 2 [features = {{ field_presence: EXPLICIT }}]; }} }}""",
    "features as one option": f"{_E23} option features = {{ field_presence: IMPLICIT"
    " enum_type: OPEN, message_encoding: DELIMITED }; message A { int32 a = 1; A b = 2; }",
    "delimited messages": f"""{_E23} message A {{ A a = 1 [features.message_encoding = DELIMITED];
        repeated A b = 2 [features.message_encoding = DELIMITED]; A c = 3; map<int32, A> d = 5;
        oneof e {{ A f = 6 [features.message_encoding = DELIMITED]; }} }}""",
    "delimited messages of a file": f"""{_E23} option features.message_encoding = DELIMITED;
        message A {{ A a = 1; map<string, A> b = 2; repeated A c = 3; int32 d = 4;
        A e = 5 [features.message_encoding = LENGTH_PREFIXED]; map<string, int32> f = 6; }}""",
    "closed enums": f"{_E23} enum E {{ option features.enum_type = CLOSED; A = 1; }} message M {{"
    " E e = 1; string s = 2 [features.utf8_validation = NONE]; reserved foo, bar; }",
    "edition 2024": f"""{_E24} package a; import option "options.proto"; message A {{ int32 a = 1;
        export message B {{ int32 x = 1; }} local enum C {{ C_UNSPECIFIED = 0; }}
        B b = 2; C c = 3; }} local message D {{ A.B b = 1; }}
        export enum E {{ E_UNSPECIFIED = 0; }}""",
    "export and local as names": f"{_E23} message export {{}} message local {{}} message A {{"
    " export export = 1; local local = 2; }",
    "a mixture of syntaxes": f'{_E24} import "common.proto"; import "google/protobuf/any.proto";'
    " message A { shop.common.Money a = 1; google.protobuf.Any b = 2; shop.common.Country c = 3; }",
    "language features": f"""{_E23} import "google/protobuf/cpp_features.proto";
        import "google/protobuf/java_features.proto";
        option features.(pb.java).utf8_validation = VERIFY;
        option features.(pb.cpp).string_type = STRING; message A {{ string a = 1; }}""",
}
