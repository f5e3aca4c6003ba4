import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { openJournal } from '../../../../cli/model/trial/journal.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

const place = temporaryDirectory()
afterAll(() => place.remove())

test('a file without a trial is never overwritten, not even with --fresh', () => {
  const file = join(place.path, 'notes.txt')
  writeFileSync(file, 'my notes\n')
  const of = { model: 'm', server: 'http://127.0.0.1:1' } as never
  for (const isFresh of [true, false]) expect(() => openJournal(file, of, isFresh)).toThrow('name another file')
  expect(readFileSync(file, 'utf8')).toBe('my notes\n')
})
