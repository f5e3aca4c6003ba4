import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { formatCsv } from '../../domain/format.ts'

const at = '2026-11-22T01:05:27.120000Z'

test('a table cell that a spreadsheet would run becomes text, and quotes, commas and line breaks stay in their cell', () => {
  const formulas = ['=1+1', '+1', '-1', '@sum', '\t=1']
  expect(formatCsv([formulas])).toBe("'=1+1,'+1,'-1,'@sum,'\t=1\r\n")
  expect(formatCsv([['a"b', 'c,d', 'e\nf', null, -0.5]])).toBe('"a""b","c,d","e\nf",,-0.5\r\n')
})

/** The zone of a process is fixed when it begins. */
function formatIn(timeZone: string, iso: string, zone: 'local' | 'utc'): string {
  const code = `import { formatMoment } from './domain/format.ts'; console.log(formatMoment('${iso}', '${zone}'))`
  const env = { ...process.env, TZ: timeZone }
  return execFileSync(process.execPath, ['--input-type=module', '--eval', code], { env, encoding: 'utf8' }).trim()
}

test.each([
  ['America/New_York', at, '2026-11-21 20:05:27 -05:00'],
  ['America/New_York', '2026-07-01T00:00:00Z', '2026-06-30 20:00:00 -04:00'],
  ['Asia/Kolkata', at, '2026-11-22 06:35:27 +05:30'],
  ['Europe/Oslo', at, '2026-11-22 02:05:27 +01:00'],
  ['UTC', at, '2026-11-22 01:05:27 UTC'],
])('a time in %s has the offset of its season', (timeZone, iso, text) => {
  expect(formatIn(timeZone, iso, 'local')).toBe(text)
})

test('a time in UTC is the same everywhere', () => {
  expect(formatIn('Asia/Kolkata', at, 'utc')).toBe('2026-11-22 01:05:27 UTC')
})
