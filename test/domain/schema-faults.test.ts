import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { listFaults, nameFaults, placeOfFault } from '../../domain/schema-faults.ts'

const source = z.strictObject({
  kind: z.enum(['prometheus', 'loki']),
  url: z.url(),
  timeoutSeconds: z.int().min(1).max(60),
})
const fits = { kind: 'loki', url: 'https://loki.example.com', timeoutSeconds: 10 }
const filter = z.discriminatedUnion('by', [
  z.object({ by: z.literal('day'), of: z.iso.date() }),
  z.object({ by: z.literal('all') }),
])

const said = (schema: z.ZodType, given: unknown) => {
  const { error } = schema.safeParse(given)
  return error ? nameFaults(error) : null
}

test.each<[string, z.ZodType, unknown, string]>([
  ['an unknown word', source, { ...fits, kind: 'promethus' }, 'kind: it is unknown: give prometheus or loki'],
  ['a word that is missing', source, { ...fits, kind: undefined }, 'kind: it is missing: give prometheus or loki'],
  ['no URL', source, { ...fits, url: 'x' }, 'url: it does not fit: give a URL, such as https://host.example.com'],
  ['a number as text', source, { ...fits, timeoutSeconds: '10' }, 'timeoutSeconds: it is a text: give a number'],
  ['no number', source, { ...fits, timeoutSeconds: Number.NaN }, 'timeoutSeconds: it is not a number: give a number'],
  ['half a number', source, { ...fits, timeoutSeconds: 1.5 }, 'timeoutSeconds: it is 1.5: give a whole number'],
  ['too much', source, { ...fits, timeoutSeconds: 61 }, 'timeoutSeconds: give at most 60'],
  [
    'a name too many',
    source,
    { ...fits, tls: true },
    '"tls" is not known here: known are kind, url and timeoutSeconds',
  ],
  ['a text in place of all', source, 'loki', 'it is a text: give an object with names and values'],
  ['too few entries', z.array(z.string()).min(1), [], 'give at least 1 entry'],
  [
    'a text that is too short',
    z.object({ reason: z.string().min(3) }),
    { reason: 'no' },
    'reason: give at least 3 characters',
  ],
  ['one of two kinds of value', z.union([z.string(), z.number()]), true, 'it is true: give a text or a number'],
  ['a kind of filter', filter, { by: 'hour' }, 'by: it is unknown: give day or all'],
  ['a day', filter, { by: 'day', of: '2026-13-40' }, 'of: it does not fit: give a day, such as 2026-11-25'],
  ['an example of its own', z.number().meta({ examples: [5] }), 'x', 'it is a text: give a number, such as 5'],
  [
    'the form that was nearly met',
    z.union([z.string(), z.object({ at: z.object({ port: z.number() }) })]),
    { at: { port: 'x' } },
    'at.port: it is a text: give a number',
  ],
  ['words of its own', z.string().refine(() => false, 'has to be a name'), 'x', 'has to be a name'],
])('a refusal names the error and the valid form: %s', (_, schema, given, expected) => {
  expect(said(schema, given)).toBe(expected)
})

test('a refusal repeats at most the beginning of a sent name', () => {
  expect(said(source, { ...fits, ['x'.repeat(5_000)]: 1 })!.length).toBeLessThan(200)
})

test('the place of an error is named without its value', () => {
  const { error } = source.safeParse({ ...fits, url: 'secret' })
  expect(placeOfFault(error!)).toBe('url')
  expect(placeOfFault(source.safeParse(null).error!)).toBe('the body')
  expect(listFaults(z.array(z.string()).safeParse(Array(50).fill(1)).error!)).toHaveLength(20)
})

test('no other file reads the words of the library', () => {
  const rooms = [
    'activities',
    'api',
    'cli',
    'clients',
    'config',
    'db',
    'domain',
    'effects',
    'ingest',
    'knowledge',
    'lab',
    'mesh',
  ]
  rooms.push('model', 'notify', 'placement', 'safety', 'sources', 'start', 'tools', 'worker', 'workflows')
  const reading = rooms.flatMap((room) =>
    readdirSync(room, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(room, file))
      .filter((file) => /\berror\??\.issues|prettifyError|flattenError|treeifyError/.test(readFileSync(file, 'utf8'))),
  )
  // These read the places of faults alone.
  const placesAlone = ['domain/valid-call.ts', 'model/plain-values.ts']
  expect(reading.filter((file) => !placesAlone.includes(file))).toEqual(['domain/schema-faults.ts'])
})
