import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { sha256 } from '../../domain/digest.ts'
import { cap, isSecretive, redact, redactJson, stripJson, stripText } from '../../safety/redact.ts'
import { isNoSecret, kindOfName } from '../../safety/redact-rules.ts'

describe('redact edges', () => {
  describe('a secret under its name', () => {
    test.each([
      ['password=hunter22', 'password=[redacted:password]'],
      ['password="hunter 22" x', 'password="[redacted:password]" x'],
      ["password='hunter 22' x", "password='[redacted:password]' x"],
      ['{\\"password\\":\\"hunter22\\",', '{\\"password\\":\\"[redacted:password]\\",'],
      ['(password=hunter22)', '(password=[redacted:password])'],
      ['[password=hunter22].', '[password=[redacted:password]].'],
      ['x password=hunter22, y', 'x password=[redacted:password], y'],
      ['password=)]},.', 'password=)]},.'],
      ['password=true.', 'password=true.'],
      ['password="true"', 'password="true"'],
      ['password=$PASSWORD', 'password=$PASSWORD'],
      ['password=[redacted:password].', 'password=[redacted:password].'],
      ['password=hunter[redacted:', 'password=[redacted:password]'],
      ['my_secret=ab1', 'my_secret=[redacted:secret]'],
      ['api_key=ab1', 'api_key=[redacted:key]'],
    ])('%s', (text, expected) => {
      expect(redact(text)).toBe(expected)
    })
  })

  describe('prose that sounds like a secret', () => {
    test.each([
      ['unexpected token: foo', 'unexpected token: foo'],
      ['bad token:  foo', 'bad token:  foo'],
      ['the secret: app/db', 'the secret: app/db'],
      ['the secret: app/db1', 'the secret: [redacted:secret]'],
      ['bad token: abcdefghijklmno', 'bad token: abcdefghijklmno'],
      ['bad token: abcdefghijklmnop', 'bad token: [redacted:token]'],
      ['bad token:foo', 'bad token:[redacted:token]'],
      ['bad token=foo', 'bad token=[redacted:token]'],
      ['"token": foo', '"token": "[redacted:token]"'],
      ['my password: foo', 'my password: [redacted:password]'],
      ['token=12345', 'token=12345'],
      ['token=123456).', 'token=123456).'],
      ['token=1234567', 'token=[redacted:token]'],
      ['token=12345a', 'token=[redacted:token]'],
      ['token=a12345', 'token=[redacted:token]'],
      ['secret=12345', 'secret=[redacted:secret]'],
      ['password=12345', 'password=[redacted:password]'],
      ['pwd=/srv/app', 'pwd=/srv/app'],
      ['PWD=~/app', 'PWD=~/app'],
      ['pwd=./app', 'pwd=./app'],
      ['pwd=a/b.c~d', 'pwd=[redacted:password]'],
      ['password=/srv/app', 'password=[redacted:password]'],
      ['next_token=abcdef1234567890', 'next_token=abcdef1234567890'],
      ['my_cookie=abcdef', 'my_cookie=abcdef'],
      ['my_authorization=abcdef', 'my_authorization=abcdef'],
      ['{my_cookie="abcdef"', '{my_cookie="[redacted:cookie]"'],
      ['x "password": 12345', 'x "password": "[redacted:password]"'],
      ['x \\"password\\": 12345, y', 'x \\"password\\": \\"[redacted:password]\\", y'],
      ['x "password": "12345"', 'x "password": "[redacted:password]"'],
    ])('%s', (text, expected) => {
      expect(redact(text)).toBe(expected)
    })
  })

  describe('pairs of a name and a value in a text', () => {
    test.each([
      ['- name: DB_PASSWORD\n  value: hunter22', '- name: DB_PASSWORD\n  value: [redacted:password]'],
      ['- name: API_TOKEN\n  value: ab1', '- name: API_TOKEN\n  value: [redacted:token]'],
      ['- name: API_TOKEN\n  value: none', '- name: API_TOKEN\n  value: none'],
      ['- name: next_token\n  value: ab1cd', '- name: next_token\n  value: [redacted:secret]'],
      ['- name: LOG_LEVEL\n  value: debug', '- name: LOG_LEVEL\n  value: debug'],
    ])('%j', (text, expected) => {
      expect(redact(text)).toBe(expected)
    })
  })

  describe('behind what announces it', () => {
    test.each([
      ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted:header]'],
      ['Authorization: $TOKEN', 'Authorization: $TOKEN'],
      ['Authorization: Bearer [redacted:header]', 'Authorization: Bearer [redacted:header]'],
      ['Authorization: Custom [redacted:token]', 'Authorization: Custom [redacted:token]'],
      ['Authorization: Custom abc [redacted:token]', 'Authorization: [redacted:header]'],
      ['Authorization: abcdefghijklmnop [redacted:token]', 'Authorization: [redacted:header]'],
      ['http://bob:hunter22@db1/x', 'http://bob:[redacted:url]@db1/x'],
      ['http://bob:$PW@db1/x', 'http://bob:$PW@db1/x'],
      ['curl -u bob:hunter22 x', 'curl -u bob:[redacted:password] x'],
      ['run --db-password hunter22 x', 'run --db-password [redacted:password] x'],
    ])('%s', (text, expected) => {
      expect(redact(text)).toBe(expected)
    })
  })

  describe('a JSON text', () => {
    test.each([
      ['keeps its blanks where it holds no secret', '{ "a":  "the password is missing" }'],
      ['keeps its numbers as they are written', '{"a":1.0,"pass":null}'],
      ['keeps digits beyond what doubles hold', '{"id":12345678901234567890,"password":null}'],
    ])('%s', (_title, text) => {
      expect(redact(text)).toBe(text)
    })

    test.each([
      ['{"password":"x y","id":12345678901234567890}', '{"password":"[redacted:password]","id":12345678901234567890}'],
      ['{"password":"x y","n":1e3}', '{"password":"[redacted:password]","n":1e3}'],
      ['{"password":"x y","n":1E400}', '{"password":"[redacted:password]","n":1E400}'],
      ['{"password":12345678901234567890}', '{"password":"[redacted:password]"}'],
      ['{"password":"x y","n":1.0}', '{"password":"[redacted:password]","n":1}'],
      [' \n{"password":"x y"}\n ', '{"password":"[redacted:password]"}'],
      ['{\n  "password": "x y"\n}', '{\n  "password": "[redacted:password]"\n}'],
      ['{\n\t"password": "x y"\n}', '{\n\t"password": "[redacted:password]"\n}'],
      ['{"a":{\n  "password": "x y"}}', '{"a":{"password":"[redacted:password]"}}'],
      ['{"password":"x y"} and more', '{"password":"[redacted:password]"} and more'],
      ['see {"password":"x y"}', 'see {"password":"[redacted:password]"}'],
      ['{"password":"x y"', '{"password":"[redacted:password]"'],
      ['{password=hunter22}', '{password=[redacted:password]}'],
      [`{"password":"x y"}${' '.repeat(90)}`, `{"password":"[redacted:password]"}${' '.repeat(90)}`],
    ])('%j', (text, expected) => {
      expect(redact(text)).toBe(expected)
    })
  })

  describe('data', () => {
    test.each<[unknown, unknown]>([
      [
        ['mysql', '-phunter22'],
        ['mysql', '-p[redacted:password]'],
      ],
      [
        ['/usr/bin/mysqldump', '-phunter22'],
        ['/usr/bin/mysqldump', '-p[redacted:password]'],
      ],
      [
        ['ls', '-phunter22'],
        ['ls', '-phunter22'],
      ],
      [
        ['mysql', 'x-phunter22'],
        ['mysql', 'x-phunter22'],
      ],
      [
        ['-phunter22', 'mysql'],
        ['-phunter22', 'mysql'],
      ],
      [
        ['mysql', '-p[redacted:password]'],
        ['mysql', '-p[redacted:password]'],
      ],
      [
        [7, '-phunter22'],
        [7, '-phunter22'],
      ],
      [
        ['mysql', '-p'],
        ['mysql', '-p'],
      ],
      [
        ['run', '--token', 'hunter22'],
        ['run', '--token', '[redacted:password]'],
      ],
      [
        ['run', '--token', '--verbose'],
        ['run', '--token', '--verbose'],
      ],
      [
        ['run', '--token', 'hunter-'],
        ['run', '--token', '[redacted:password]'],
      ],
      [
        [7, 'hunter22'],
        [7, 'hunter22'],
      ],
      [
        { name: 'DB_PASSWORD', value: 'hunter22' },
        { name: 'DB_PASSWORD', value: '[redacted:password]' },
      ],
      [
        { key: 'DB_PASSWORD', VALUE: 'hunter22' },
        { key: 'DB_PASSWORD', VALUE: '[redacted:password]' },
      ],
      [
        { Name: 'DB_PASSWORD', value_of: 'hunter22' },
        { Name: 'DB_PASSWORD', value_of: 'hunter22' },
      ],
      [
        { Key: 'DB_PASSWORD', old_value: 'hunter22' },
        { Key: 'DB_PASSWORD', old_value: 'hunter22' },
      ],
      [{ token: 999_999 }, { token: 999_999 }],
      [{ token: 1_000_000 }, { token: '[redacted:token]' }],
      [{ password: 7 }, { password: '[redacted:password]' }],
      [{ password: true }, { password: true }],
      [{ password: ['a b', 7, { x: 'y' }] }, { password: ['[redacted:password]', '[redacted:password]', { x: 'y' }] }],
      [{ 'password=hunter22': 1 }, { 'password=[redacted:password]': 1 }],
    ])('%j', (value, expected) => {
      expect(redactJson(value)).toEqual(expected)
    })

    test('that holds no secret is the same object, and what JSON cannot say is left out', () => {
      const plain = { a: [1, { b: 'x' }] }
      expect(redactJson(plain)).toBe(plain)
      expect(Object.keys(redactJson({ a: undefined, b: 1 }))).toEqual(['b'])
    })

    test('nested without end is cut at 400 levels', () => {
      const nested = (depth: number, wrap: (inner: unknown) => unknown) => {
        let value: unknown = ['x']
        for (let n = 0; n < depth; n += 1) value = wrap(value)
        return JSON.stringify(redactJson(value))
      }
      const kinds: ((inner: unknown) => unknown)[] = [(x) => [x], (x) => ({ x }), (x) => ({ password: x })]
      for (const wrap of kinds) {
        expect(nested(400, wrap)).not.toContain('too deep')
        expect(nested(402, wrap)).toContain('too deep')
      }
      expect(() => nested(3_000, (x) => ({ password: [x] }))).not.toThrow()
    })

    test('is secretive when a part of it would be taken out', () => {
      expect([isSecretive('password=hunter22'), isSecretive('password=true')]).toEqual([true, false])
      expect([isSecretive({ a: ['password=hunter22'] }), isSecretive({ a: ['x'] })]).toEqual([true, false])
      expect([isSecretive({ password: 'hunter22' }), isSecretive(7), isSecretive(null)]).toEqual([true, false, false])
      // Left out by JSON, and no secret.
      expect(isSecretive({ a: undefined })).toBe(false)
    })
  })

  describe('a name', () => {
    test.each([
      [`${'x'.repeat(112)}password`, 'password'],
      [`${'x'.repeat(113)}password`, null],
      ['access key', 'key'],
      ['api key', 'key'],
      ['tokens', null],
      ['public_key', null],
      ['client secret', 'secret'],
    ])('%s promises %s', (name, kind) => {
      expect(kindOfName(name)).toBe(kind)
    })
  })

  test.each(['', 'NULL', 'required.', '$PW', '$(pw)', '{{ pw }}', '<password>', '****', '[redacted:token]'])(
    '%j is no secret',
    (text) => {
      expect(isNoSecret(text)).toBe(true)
    },
  )
})

describe('strip', () => {
  describe('strip', () => {
    const esc = '\u001b'

    describe('stripText', () => {
      test.each([
        ['a colour', `a${esc}[1;31mb${esc}[0m`, 'ab'],
        ['an 8-bit CSI', 'a\u009b31mb', 'ab'],
        ['cursor movement', `a${esc}[2J${esc}[Hb`, 'ab'],
        ['a private mode', `a${esc}[?1049hb`, 'ab'],
        ['a title by OSC, ended by BEL', `a${esc}]0;title\u0007b`, 'ab'],
        ['a link by OSC, ended by ST', `${esc}]8;;http://evil${esc}\\text${esc}]8;;${esc}\\`, 'text'],
        ['an 8-bit OSC', 'a\u009d0;title\u009cb', 'ab'],
        ['a clipboard write', `a${esc}]52;c;ZXZpbA==\u0007b`, 'ab'],
        ['DCS', `a${esc}P1$r0m${esc}\\b`, 'ab'],
        ['APC and PM', `a${esc}_x${esc}\\b${esc}^y${esc}\\c`, 'abc'],
        ['a charset switch', `a${esc}(0b`, 'ab'],
        ['a reset', `a${esc}cb`, 'ab'],
        ['an escape with nothing behind', `a${esc}`, 'a'],
        ['an open OSC, no further than its line', `a${esc}]0;x\nb`, 'a\nb'],
        ['bell and backspace', 'a\u0007\u0008b', 'ab'],
        ['a carriage return that overwrites', 'safe\rrm', 'saferm'],
        ['a Windows line end', 'a\r\nb', 'a\nb'],
        ['C1 controls', 'a\u0085\u0080b', 'ab'],
        ['a bidi override', 'a\u202eb\u202cc', 'abc'],
        ['bidi isolates', 'a\u2066b\u2069c', 'abc'],
        ['direction marks', 'a\u200e\u200f\u061cb', 'ab'],
        ['zero-width characters', 'a\u200b\u200c\u200d\u2060\ufeffb', 'ab'],
        ['a soft hyphen', 'a\u00adb', 'ab'],
        ['tag characters', 'a\u{e0001}\u{e0041}\u{e007f}b', 'ab'],
        ['variation selectors', 'a\ufe0f\u{e0100}b', 'ab'],
        ['fillers', 'a\u3164\u115f\u1160\uffa0\u2800\u034fb', 'ab'],
        ['line and paragraph separators', 'a\u2028\u2029b', 'ab'],
        ['U+0000', 'a\u0000b', 'a\ufffdb'],
        ['a lone high surrogate', 'a\ud83db', 'a\ufffdb'],
        ['a lone low surrogate', 'a\udc4db', 'a\ufffdb'],
        ['surrogates that meet once a control between is gone', 'a\ud83d\u0001\udc4db', 'a\ufffd\ufffdb'],
        ['an escape that shows once another is gone', `a${esc}${esc}[0m[31mb`, 'a[31mb'],
        ['tabs and newlines, which stay', 'a\tb\nc', 'a\tb\nc'],
        [
          'every script, which stays',
          'Ærø, Ελλάδα, 日本語, العربية, हिन्दी, é, e\u0301, 👍',
          'Ærø, Ελλάδα, 日本語, العربية, हिन्दी, é, e\u0301, 👍',
        ],
        ['no-break space and dashes, which stay', 'a\u00a0b – c', 'a\u00a0b – c'],
      ])('%s', (_, text, clean) => {
        expect(stripText(text)).toBe(clean)
      })

      test('makes one line where one is asked for', () => {
        expect(stripText('a\n\nb\tc', { keepNewlines: false })).toBe('a b c')
      })

      test('is idempotent, well-formed and free of controls, whatever comes', () => {
        const piece = fc.constantFrom(
          esc,
          '[',
          ']',
          '0',
          ';',
          'm',
          '\u0007',
          '\u009b',
          '\u009d',
          '\\',
          '\ud83d',
          '\udc4d',
          '\u200b',
          '\n',
          'P',
          '\r',
        )
        const text = fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(piece, { maxLength: 20 }).map((all) => all.join('')),
        )
        fc.assert(
          fc.property(text, (dirty) => {
            const clean = stripText(dirty)
            expect(stripText(clean)).toBe(clean)
            expect(clean.isWellFormed()).toBe(true)
            expect(clean.replace(/[\t\n]/g, '')).not.toMatch(
              /[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u,
            )
          }),
          { numRuns: 5000 },
        )
      })
    })

    test('stripJson reaches keys and leaves what is no text', () => {
      const dirty = { 'a\u200b': ['b\u0007', 1, null, true, { 'c\u0000': 'd' }], gone: undefined }
      expect(stripJson(dirty)).toEqual({ a: ['b', 1, null, true, { 'c\ufffd': 'd' }] })
      expect(JSON.stringify(stripJson(JSON.parse('{"__proto__":"x\\u0007"}')))).toBe('{"__proto__":"x"}')
    })

    describe('cap', () => {
      test('answers null where the text fits', () => {
        expect(cap('abc', 3)).toBeNull()
        expect(cap('', 0)).toBeNull()
      })

      test('keeps head and tail, the size and the digest of the whole', () => {
        expect(cap('abcdefghij', 6)).toEqual({ head: 'abcd', tail: 'ij', bytes: 10, digest: sha256('abcdefghij') })
      })

      test('cuts between characters and stays within the limit', () => {
        const text = fc
          .string({ unit: 'grapheme', minLength: 5, maxLength: 60 })
          .map((whole) => whole.replaceAll('\ufffd', ''))
        fc.assert(
          fc.property(text, fc.nat(20), (whole, limit) => {
            const capped = cap(whole, limit)
            if (!capped) return
            expect(Buffer.byteLength(capped.head + capped.tail)).toBeLessThanOrEqual(limit)
            expect(whole.startsWith(capped.head)).toBe(true)
            expect(whole.endsWith(capped.tail)).toBe(true)
            expect(capped.head + capped.tail).not.toContain('\ufffd')
          }),
          { numRuns: 2000 },
        )
      })
    })
  })

  describe('strip edges', () => {
    function nested(depth: number, leaf: unknown, wrap: (inner: unknown) => unknown): unknown {
      let value = leaf
      for (let n = 0; n < depth; n += 1) value = wrap(value)
      return value
    }

    describe('data nested without end', () => {
      test.each<[string, (inner: unknown) => unknown]>([
        ['lists', (inner) => [inner]],
        ['objects', (inner) => ({ inner })],
      ])('of %s is cut at 400 levels', (_title, wrap) => {
        expect(JSON.stringify(stripJson(nested(400, [1], wrap)))).not.toContain('too deep')
        expect(JSON.stringify(stripJson(nested(401, [1], wrap)))).toContain('[nested too deep]')
      })
    })

    test('what JSON cannot say is left out', () => {
      expect(Object.keys(stripJson({ a: undefined, b: null }))).toEqual(['b'])
    })

    describe('a text too long to keep', () => {
      test.each([
        [0, '', ''],
        [1, '', 'é'.slice(1)],
        [3, 'é', ''],
        [4, 'é', 'é'],
      ])('in %i bytes is cut between characters', (limit, head, tail) => {
        expect(cap('ééééé', limit)).toMatchObject({ head, tail, bytes: 10 })
      })

      test('that fits is kept whole, by its bytes and not by its letters', () => {
        expect(cap('éé', 4)).toBe(null)
        expect(cap('éé', 3)).not.toBe(null)
      })

      test('of one character that is longer than the limit leaves nothing', () => {
        expect(cap('😀', 2)).toMatchObject({ head: '', tail: '', bytes: 4 })
        expect(cap('😀', 3)).toMatchObject({ head: '', tail: '', bytes: 4 })
      })
    })
  })
})
