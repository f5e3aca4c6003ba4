import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { redact } from '../../safety/redact.ts'
import { figuresFrom, makeSecrets } from '../support/made-secrets.ts'

/**
 * Forms of secrets with the public place that documents each, and texts that hold none. Half of
 * each, chosen by a hash, was looked at while the rules were written; of the other half only the
 * figures were. So the held half says what a form nobody thought of may expect.
 */
const read = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../data/redaction/${name}.json`, import.meta.url), 'utf8'))
const forms = read<[kind: string, name: string, form: string, source: string][]>('forms')
const harmless = read<string[]>('harmless')

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest()
const halfOf = (text: string): 'tuning' | 'held' => ((hashOf(text)[0] as number) % 2 === 0 ? 'tuning' : 'held')

/** Eight characters of a secret that are still there are a leak, also where the rest is gone. */
function leaksOf(form: string): string[] {
  const { text, secrets } = makeSecrets(form, figuresFrom(hashOf(form).readInt32BE(4)))
  const clean = redact(text)
  return secrets.filter((secret) =>
    Array.from({ length: secret.length - 7 }, (_, at) => secret.slice(at, at + 8)).some((part) => clean.includes(part)),
  )
}

/**
 * Nothing where few enough are found; else the names of those that may be looked at, and of the
 * held half the figure alone.
 */
function tooMany(half: 'tuning' | 'held', found: string[], all: number, share: number): (string | number)[] {
  if (found.length <= all * share) return []
  return half === 'held' ? [found.length] : found
}

describe.each(['tuning', 'held'] as const)('the %s half', (half) => {
  const own = forms.filter(([, , form]) => halfOf(form) === half)
  const plain = harmless.filter((text) => halfOf(text) === half)

  test('loses its secrets, all but one in twenty', () => {
    const kept = own.filter(([, , form]) => leaksOf(form).length > 0).map(([kind, name]) => `${kind}: ${name}`)
    expect(own.length).toBeGreaterThan(200)
    expect(tooMany(half, kept, own.length, 0.05)).toEqual([])
  })

  test('keeps harmless text, all but one in a hundred', () => {
    const changed = plain.filter((text) => redact(text) !== text)
    expect(plain.length).toBeGreaterThan(100)
    expect(tooMany(half, changed, plain.length, 0.01)).toEqual([])
  })
})

test('every form contains a secret and names its documentation', () => {
  for (const [kind, name, form, source] of forms) {
    expect([kind, name, source].every((word) => word.length > 1)).toBe(true)
    expect(makeSecrets(form, figuresFrom(1)).secrets).not.toEqual([])
  }
})

test('redacted text stays as it is', () => {
  for (const [, , form] of forms) {
    const clean = redact(makeSecrets(form, figuresFrom(2)).text)
    expect(redact(clean)).toBe(clean)
  }
})
