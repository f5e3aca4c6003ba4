import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { hideCredentials, hideKey } from '../../domain/hidden-credentials.ts'

const credentialMark = '[credential]'
const secret = 'p&ss<w>rd-"ABC"/xy+z 9\\e'
const utf8 = Buffer.from(secret)
const goJson = JSON.stringify(secret).replace(/[&<>]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)
const everyUnit = [...secret].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
const percent = [...utf8].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
const html = secret.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] as string)

test.each([
  ['as it is', `a ${secret} b`],
  ['as JSON writes it', JSON.stringify({ a: secret })],
  ["as Go's encoder writes it", goJson],
  [
    'with every character escaped, in small letters and capitals',
    everyUnit + everyUnit.toUpperCase().replaceAll('\\U', '\\u'),
  ],
  ['within a text of JSON within JSON', JSON.stringify(JSON.stringify(JSON.stringify({ log: secret })))],
  ['in an address', `?q=${encodeURIComponent(secret)}&r=1`],
  ['in a form', `q=${new URLSearchParams({ x: secret })}`],
  ['with every byte as %xx', percent],
  ['with every byte as %XX', percent.toUpperCase()],
  ['in an address within an address', encodeURIComponent(encodeURIComponent(secret))],
  ['as HTML', html],
  ['as numbers of HTML', [...secret].map((c) => `&#${c.charCodeAt(0)};`).join('')],
  ['in base64', utf8.toString('base64')],
  ['in base64url', utf8.toString('base64url')],
  ['in base64, one byte later', Buffer.from(`a${secret}`).toString('base64')],
  ['in base64, two bytes later, with more behind it', Buffer.from(`ab${secret}cde`).toString('base64url')],
  ['in base64 within an address', encodeURIComponent(utf8.toString('base64'))],
  ['in hexadecimal', utf8.toString('hex')],
  ['in HEXADECIMAL', utf8.toString('hex').toUpperCase()],
])('a credential %s is hidden', (_, text) => {
  const safe = hideCredentials([secret]).text(text)
  expect(safe).toContain(credentialMark)
  expect(safe).not.toMatch(/ABC|QUJD|FCQ|BQk|414243|%41|u0041|#65/i)
})

test('of a pair only the password and the Basic header are hidden, and the name stays', () => {
  const { text } = hideCredentials(['reader:sesame-door'])
  const header = `Basic ${Buffer.from('reader:sesame-door').toString('base64')}`
  expect(text(`${header} sesame-door reader`)).toBe('Basic [credential] [credential] reader')
})

test('keys, values and numbers of a decoded answer are hidden, and its shape stays', () => {
  const { value } = hideCredentials([secret, '1234567890'])
  const given = {
    [secret]: [secret, 1, null, true, { x: `a${secret}` }],
    n: 1_234_567_890,
    __proto__: null,
    ok: 'fine',
  }
  expect(value(given)).toEqual({
    [credentialMark]: [credentialMark, 1, null, true, { x: `a${credentialMark}` }],
    n: credentialMark,
    ok: 'fine',
  })
})

test('a short credential is hidden only as a whole word, so that the answer stays readable', () => {
  const { text } = hideCredentials(['prom'])
  expect(text('prometheus prom "prom" node_prom1 cHJvbQ==')).toBe(
    'prometheus [credential] "[credential]" node_prom1 [credential]',
  )
  expect(hideCredentials(['up', '']).text('up{job="a"}')).toBe('up{job="a"}')
  expect(hideKey('EMPTY').text('EMPTY')).toBe('EMPTY')
})

test('a credential of any characters is hidden in every encoding, and a text without it stays', () => {
  const credentials = fc
    .string({ unit: 'binary', minLength: 8, maxLength: 40 })
    .filter((each) => each.trim() === each && each.isWellFormed())
  fc.assert(
    fc.property(credentials, fc.string({ maxLength: 20 }), (given, around) => {
      const { text, value } = hideCredentials([given])
      for (const written of [given, encodeURIComponent(given), Buffer.from(given).toString('hex')])
        expect(text(`${around}${written}${around}`)).toContain(credentialMark)
      const json = JSON.stringify({ a: `${around}${given}` })
      expect(value(JSON.parse(text(json)))).toEqual({ a: expect.stringContaining(credentialMark) })
      expect(text('nothing of it')).toBe('nothing of it')
    }),
  )
})

test('a megabyte of near matches takes one pass', () => {
  const { text } = hideCredentials([`\\\\${'a&'.repeat(30)}`])
  for (const near of ['\\', 'a&', 'a&amp;', '%', '%25', '\\u0061', 'AAAA', '\\\\a'])
    expect(text(near.repeat(200_000)).length).toBe(near.length * 200_000)
})
