import { copyFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { readSpecAndSettle } from './program.ts'

/**
 * Backs up the pages of a node's tenants, once per period. During a backup, the file
 * `backup/running` contains its start.
 */
const { periodMs, runMs } = readSpecAndSettle<{ periodMs: number; runMs: number }>()
const marker = 'backup/running'
process.title = 'nightly-backup'
rmSync(marker, { force: true })
process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)

for (;;) {
  writeFileSync(marker, `${new Date().toISOString()}\n`)
  for (const tenant of readdirSync('tenants')) copyFileSync(`tenants/${tenant}/index.html`, `backup/${tenant}.html`)
  await sleep(runMs)
  rmSync(marker, { force: true })
  await sleep(periodMs - runMs)
}
