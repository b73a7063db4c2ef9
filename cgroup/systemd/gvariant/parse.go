package gvariant

import "strconv"

// Parse reads one value. The error is an *Error.
func Parse(text string) (Value, error) {
	p := &parser{scan: scanner{text: text}}
	if err := p.advance(); err != nil {
		return Value{}, err
	}
	n, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.tok.kind != endToken {
		return Value{}, fail(p.tok.at, "more text after the value")
	}
	t, ok := settle(n.typ)
	if !ok {
		return Value{}, fail(n.at, "the type cannot be told: write it before the value, as in @as []")
	}
	return n.resolve(t)
}

// node is a value of which the type is not settled yet.
type node struct {
	kind     nodeKind
	at       int
	typ      typ
	text     string // of numbers and strings
	elements []node
}

type nodeKind byte

const (
	boolNode nodeKind = iota
	numberNode
	stringNode
	bytesNode
	arrayNode
	tupleNode
	entryNode
	variantNode
	justNode
	nothingNode
)

type parser struct {
	scan scanner
	tok  token
}

func (p *parser) advance() (err error) {
	p.tok, err = p.scan.next()
	return err
}

// take steps over a punctuation mark if it is there.
func (p *parser) take(mark string) (bool, error) {
	if p.tok.kind != punctToken || p.tok.text != mark {
		return false, nil
	}
	return true, p.advance()
}

// expect steps over a punctuation mark that must be there.
func (p *parser) expect(mark, after string) error {
	ok, err := p.take(mark)
	if err == nil && !ok {
		err = fail(p.tok.at, "expected "+strconv.Quote(mark)+" after "+after)
	}
	return err
}

func (p *parser) value(depth int) (node, error) {
	tok := p.tok
	if depth > maxDepth {
		return node{}, fail(tok.at, "nested too deep")
	}
	switch tok.kind {
	case endToken:
		return node{}, fail(tok.at, "a value is missing")
	case punctToken:
		return p.bracket(depth)
	case typeToken:
		if err := p.advance(); err != nil {
			return node{}, err
		}
		return p.typed(tok.typ, tok.at, depth)
	case numberToken:
		kind := byte(anyNumber)
		if isFloat(tok.text) {
			kind = 'd'
		}
		return node{kind: numberNode, at: tok.at, typ: typ{kind: kind}, text: tok.text}, p.advance()
	case stringToken:
		if tok.bytes {
			return node{kind: bytesNode, at: tok.at, typ: arrayOf(typ{kind: 'y'}), text: tok.text}, p.advance()
		}
		return node{kind: stringNode, at: tok.at, typ: typ{kind: anyString}, text: tok.text}, p.advance()
	}
	return p.word(depth)
}

func (p *parser) word(depth int) (node, error) {
	tok := p.tok
	if err := p.advance(); err != nil {
		return node{}, err
	}
	switch tok.text {
	case "true", "false":
		return node{kind: boolNode, at: tok.at, typ: typ{kind: 'b'}, text: tok.text}, nil
	case "nothing":
		return node{kind: nothingNode, at: tok.at, typ: maybeOf(typ{kind: anyType})}, nil
	case "just":
		inner, err := p.value(depth + 1)
		return node{kind: justNode, at: tok.at, typ: maybeOf(inner.typ), elements: []node{inner}}, err
	}
	kind, ok := keywordType(tok.text)
	if !ok {
		return node{}, fail(tok.at, "unknown word "+strconv.Quote(tok.text)+" (a string is written in quotes)")
	}
	return p.typed(typ{kind: kind}, tok.at, depth)
}

// typed is a value behind the type that it is to have.
func (p *parser) typed(t typ, at, depth int) (node, error) {
	n, err := p.value(depth + 1)
	if err != nil {
		return node{}, err
	}
	u, ok := unify(t, n.typ)
	if !ok || u.String() != t.String() {
		return node{}, fail(n.at, "the value is not of type "+strconv.Quote(t.String()))
	}
	n.typ, n.at = t, at
	return n, nil
}

func (p *parser) bracket(depth int) (node, error) {
	tok := p.tok
	if err := p.advance(); err != nil {
		return node{}, err
	}
	switch tok.text {
	case "[":
		return p.array(tok.at, depth)
	case "(":
		return p.tuple(tok.at, depth)
	case "{":
		return p.dict(tok.at, depth)
	case "<":
		inner, err := p.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		return node{kind: variantNode, at: tok.at, typ: typ{kind: 'v'}, elements: []node{inner}}, p.expect(">", "the value of a variant")
	}
	return node{}, fail(tok.at, "unexpected "+strconv.Quote(tok.text))
}

func (p *parser) array(at, depth int) (node, error) {
	n := node{kind: arrayNode, at: at}
	elem := typ{kind: anyType}
	for {
		done, err := p.take("]")
		if err != nil {
			return node{}, err
		}
		if done {
			n.typ = arrayOf(elem)
			return n, nil
		}
		if len(n.elements) > 0 {
			if err := p.expect(",", "an element of an array, or ] at its end"); err != nil {
				return node{}, err
			}
		}
		e, err := p.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		var ok bool
		if elem, ok = unify(elem, e.typ); !ok {
			return node{}, fail(e.at, "the elements of the array have no common type")
		}
		n.elements = append(n.elements, e)
	}
}

func (p *parser) tuple(at, depth int) (node, error) {
	n := node{kind: tupleNode, at: at, typ: typ{kind: '('}}
	for comma := true; ; {
		done, err := p.take(")")
		if err != nil {
			return node{}, err
		}
		if done {
			// (5) would be a value in brackets in other languages, so the
			// format wants (5,) for a tuple of one.
			if len(n.elements) == 1 && !comma {
				return node{}, fail(at, "a tuple of one is written with a comma, as in (5,)")
			}
			return n, nil
		}
		if !comma {
			return node{}, fail(p.tok.at, `expected "," or ")" after an element of a tuple`)
		}
		e, err := p.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.elements = append(n.elements, e)
		n.typ.elems = append(n.typ.elems, e.typ)
		if comma, err = p.take(","); err != nil {
			return node{}, err
		}
		if comma && len(n.elements) > 1 && p.tok.kind == punctToken && p.tok.text == ")" {
			return node{}, fail(p.tok.at, "a value is missing after the comma")
		}
	}
}

// dict is {k: v, …}, or a single entry {k, v} without a dictionary.
func (p *parser) dict(at, depth int) (node, error) {
	n := node{kind: arrayNode, at: at}
	entry := typ{'{', []typ{{kind: anyType}, {kind: anyType}}}
	if done, err := p.take("}"); err != nil || done {
		n.typ = arrayOf(entry)
		return n, err
	}
	for {
		e, single, err := p.entry(depth)
		if err != nil {
			return node{}, err
		}
		if single {
			if len(n.elements) > 0 {
				return node{}, fail(e.at, "expected a colon after the key")
			}
			return e, p.expect("}", "a dictionary's entry")
		}
		var ok bool
		if entry, ok = unify(entry, e.typ); !ok {
			return node{}, fail(e.at, "the entries of the dictionary have no common type")
		}
		n.elements = append(n.elements, e)
		more, err := p.take(",")
		if err != nil {
			return node{}, err
		}
		if !more {
			n.typ = arrayOf(entry)
			return n, p.expect("}", "the entries of a dictionary")
		}
	}
}

func (p *parser) entry(depth int) (e node, single bool, err error) {
	key, err := p.value(depth + 1)
	if err != nil {
		return node{}, false, err
	}
	if !key.typ.isBasic() {
		return node{}, false, fail(key.at, "a key cannot be of type "+strconv.Quote(key.typ.String()))
	}
	colon, err := p.take(":")
	if err == nil && !colon {
		single = true
		err = p.expect(",", "the key of an entry, or a colon")
	}
	if err != nil {
		return node{}, false, err
	}
	value, err := p.value(depth + 1)
	if err != nil {
		return node{}, false, err
	}
	return node{kind: entryNode, at: key.at, typ: typ{'{', []typ{key.typ, value.typ}}, elements: []node{key, value}}, single, nil
}
