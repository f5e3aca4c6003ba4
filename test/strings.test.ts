import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { listStrings } from './strings/list.ts'

/**
 * Texts that people or the model may read, one list a room, so that a change of words is seen.
 * `UPDATE=1 npm test -- test/strings` writes the lists, and a review of the change reads them.
 */
const place = 'test/strings'
const listed = listStrings()
const kept = () => readdirSync(place).filter((file) => file.endsWith('.txt'))

if (process.env.UPDATE) {
  mkdirSync(place, { recursive: true })
  for (const file of kept()) rmSync(join(place, file))
  for (const [room, text] of listed) writeFileSync(join(place, `${room}.txt`), `${text}\n`)
}

test.each([...listed.keys()])('the words of %s are those that were read', (room) => {
  const file = join(place, `${room}.txt`)
  expect(`${listed.get(room)}\n`).toBe(readFileSync(file, 'utf8'))
})

test('no list is of a room that is gone, and each is read in ten minutes', () => {
  expect(kept().sort()).toEqual([...listed.keys()].map((room) => `${room}.txt`).sort())
  const words = kept().map((file) => [file, readFileSync(join(place, file), 'utf8').split(/\s+/).length] as const)
  expect(words.filter(([, count]) => count > 3_000)).toEqual([])
})
