import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { stripText } from '../../safety/redact.ts'

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

  test('makes one line on request', () => {
    expect(stripText('a\n\nb\tc', { keepNewlines: false })).toBe('a b c')
  })

  test('is idempotent, well-formed and free of controls for any text', () => {
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
