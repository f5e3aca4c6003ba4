import { expect, test } from '@jest/globals'
import { admittedTypes } from '../../domain/admission.ts'

const waiting = (text: string) =>
  text.split(' ').map((word) => ({
    type: word.replace(/[!+]/g, ''),
    isCritical: word.includes('!'),
    isAtWork: word.includes('+'),
  }))
const leading = (text: string) =>
  text === '' ? [] : text.split(' ').map((word) => ({ type: word.replace('!', ''), isCritical: word.includes('!') }))

test.each([
  ['of three slots warnings take two', 'a b c', '', 3, 'a b'],
  ['a critical type takes the slot that is kept', 'x! a', 'b c', 3, 'x'],
  ['critical types take every slot', 'x! y! z! a', '', 3, 'x y z'],
  ['beside a critical leader warnings take two still', 'a b c', 'x!', 3, 'a b'],
  ['with every slot taken nobody new begins, and who is at work goes on', 'x! a+ b', 'a b! c', 3, 'a'],
  ['a single slot is for the first', 'a x!', '', 1, 'a'],
  ['types with followers alone at work take none', 'a+ b+ c+ d e', '', 3, 'a b c d e'],
])('%s', (_title, types, leaders, slots, admitted) => {
  expect(admittedTypes(waiting(types), leading(leaders), slots).join(' ')).toBe(admitted)
})
