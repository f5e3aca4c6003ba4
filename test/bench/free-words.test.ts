import { expect, test } from '@jest/globals'
import { freeScenes } from '../../bench/grounding/free-words.ts'
import { judgeFreeWords, sumUpFreeWords } from '../../bench/grounding/judge-free-words.ts'

const endings = freeScenes.flatMap(({ endings: own }) => own)

test('there are enough endings in free words, true and false, and each occurs once', () => {
  expect(endings.length).toBeGreaterThanOrEqual(30)
  for (const isTrue of [true, false])
    expect(endings.filter((each) => each.isTrue === isTrue).length).toBeGreaterThan(14)
  expect(new Set(endings.map(({ claim }) => claim.text)).size).toBe(endings.length)
})

test('the words that an ending quotes are in the row that it cites, unless it calls them absent', () => {
  const plain = (text: string) => text.replace(/[\s"\\]+/g, '')
  for (const { rows, endings: own } of freeScenes) {
    for (const { claim } of own) {
      for (const { seq, text } of claim.quotes) {
        const metadata = plain(JSON.stringify(rows[seq - 1]?.metadata))
        expect([claim.text, metadata.includes(plain(text))]).toEqual([claim.text, claim.kind !== 'absent'])
      }
    }
  }
})

test('no false ending is supported by rows, and the shares count each ending once', () => {
  const outcomes = judgeFreeWords()
  const byRows = outcomes.filter(({ ending, grade }) => !ending.isTrue && grade === 'A')
  expect(byRows.map(({ ending }) => ending.claim.text)).toEqual([])
  const hits = Object.values(sumUpFreeWords(outcomes)).map((share) => Number(share.split(' ')[0]))
  expect(hits.reduce((sum, each) => sum + each, 0)).toBe(endings.length)
})
