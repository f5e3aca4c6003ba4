import { expect, test } from '@jest/globals'
import { newId } from '../../domain/digest.ts'
import { idIn, pathOfId } from '../../domain/step-key.ts'

test('an id is found alone, in an address and in a sentence', () => {
  for (const [prefix, path] of [
    ['inc', '/incidents/'],
    ['apr', '/approvals/'],
  ]) {
    const id = newId(prefix as string)
    for (const text of [id, ` ${id}\n`, `https://night.example/x/${id}#e-12`, `see ${id}.`]) expect(idIn(text)).toBe(id)
    expect(pathOfId(id)).toBe(`${path}${id}`)
  }
})

test('a text that only resembles an id is searched for as words', () => {
  for (const text of ['', 'inc_', 'inc_01', `inc_${'0'.repeat(27)}`, `zinc_${'0'.repeat(26)}`, newId('prp'), null])
    expect(idIn(text)).toBeNull()
})
