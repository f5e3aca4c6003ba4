import { expect, test } from '@jest/globals'
import { lines, listChanges } from '../../web/differences.ts'

test.each([
  ['nothing', { id: 'a', n: 1 }, { n: 1, id: 'a' }, []],
  ['a value', { id: 'a' }, { id: 'b' }, [['id', 'a', 'b']]],
  ['a place that was left out', { id: 'a', n: 1 }, { id: 'a' }, [['n', 1, undefined]]],
  ['a new place, even one that is null', { id: 'a' }, { id: 'a', n: null }, [['n', undefined, null]]],
  // What reads like a method of every object is an argument like any other.
  ['a place with a name of its own', {}, { constructor: 1 }, [['constructor', undefined, 1]]],
  ['deep inside', { on: { hosts: ['a', 'b'] } }, { on: { hosts: ['a', 'c'] } }, [['on.hosts[1]', 'b', 'c']]],
  ['a list that grew', { hosts: ['a'] }, { hosts: ['a', 'b'] }, [['hosts[1]', undefined, 'b']]],
  ['another kind of value', { hosts: ['a'] }, { hosts: { a: 1 } }, [['hosts', ['a'], { a: 1 }]]],
])('a change of arguments shows %s', (_, from, to, expected) => {
  expect(listChanges(from, to).map(({ path, from, to }) => [path, from, to])).toEqual(expected)
})

const signed = (from: string, to: string) => lines(from, to).map(({ sign, text }) => `${sign}${text}`)

test('a changed text shows the removed and added lines, with two around them', () => {
  const before = ['one', 'two', 'three', 'four', 'five', 'six', 'seven']
  expect(signed(before.join('\n'), before.with(3, 'FOUR').join('\n'))).toEqual([
    ' two',
    ' three',
    '-four',
    '+FOUR',
    ' five',
    ' six',
  ])
  expect(signed('a\nb', 'a\nb')).toEqual([])
  expect(signed('a', 'a\nb')).toEqual([' a', '+b'])
})

test('a text too long to compare is shown as removed and added', () => {
  const long = (word: string) => new Array(1_100).fill(word).join('\n')
  expect(signed(long('a'), long('b'))).toHaveLength(2_200)
})
