import { expect, test } from '@jest/globals'
import { admittedTypes, roomForFollowers, waitForLeader } from '../../domain/admission.ts'

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
  expect(admittedTypes(waiting(types), leading(leaders), slots, { max: 0, atWork: 0 }).join(' ')).toBe(admitted)
})

test.each([
  [
    'ten critical types begin beside a storm that has every slot',
    'k! l! m! a',
    'b c d',
    3,
    { max: 12, atWork: 0 },
    'k l m',
  ],
  [
    'those at work take of the room, leaders and followers alike',
    'k! l! m!',
    'b c d',
    3,
    { max: 12, atWork: 10 },
    'k l',
  ],
  ['beyond the room a critical type needs a slot', 'k! l!', 'b', 3, { max: 1, atWork: 1 }, 'k l'],
  ['leaders in the room take no slot of the others', 'a b', 'k! l!', 3, { max: 12, atWork: 2 }, 'a b'],
  ['types that were stamped just now are counted, claimed or not', 'm!', 'k! l! b c d', 3, { max: 2, atWork: 0 }, ''],
])('%s', (_title, types, leaders, slots, critical, admitted) => {
  expect(admittedTypes(waiting(types), leading(leaders), slots, critical).join(' ')).toBe(admitted)
})

test('a critical follower waits for the first reads of a critical leader, and never for a warning', () => {
  expect(waitForLeader('critical', { severity: 'critical', atWorkSeconds: 5 })).toBe(15)
  expect(waitForLeader('critical', { severity: 'critical', atWorkSeconds: 50 })).toBe(0)
  expect(waitForLeader('critical', { severity: 'warning', atWorkSeconds: 0 })).toBe(0)
  expect(waitForLeader('warning', { severity: 'critical', atWorkSeconds: 50 })).toBeNull()
})

test('critical followers first use their own slots, and take shared slots only beyond them', () => {
  const room = { max: 12, atWork: 3 }
  expect(roomForFollowers({ critical: 9, others: 5 }, 4, room)).toEqual({ critical: 9, others: 4 })
  expect(roomForFollowers({ critical: 11, others: 5 }, 4, room)).toEqual({ critical: 11, others: 2 })
  expect(roomForFollowers({ critical: 20, others: 5 }, 4, room)).toEqual({ critical: 13, others: 0 })
  expect(roomForFollowers({ critical: 2, others: 5 }, -1, room)).toEqual({ critical: 2, others: 0 })
})
