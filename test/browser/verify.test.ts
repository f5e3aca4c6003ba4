import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import { decide } from '../../db/approvals/decide.ts'
import { claimed } from '../db/verify/life.ts'
import { asked } from '../support/announced.ts'
import { screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { openedIncident } from '../support/database.ts'
import { mintedToken } from '../support/decision-tokens.ts'

const on = useBrowser()

const looks = [
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const

async function anApproved(): Promise<{ incident: string; approval: string }> {
  const { db, tokens } = on.spine
  const incident = await openedIncident(db)
  await db.transaction().execute((trx) => claimed(trx, incident))
  const approval = await asked(db, incident, { tool: 'converge_shard', identity: { id: 'db-osl-1' } })
  const person = (await principalOf(db, tokens.approver))!
  const token = await mintedToken(db, person, approval, { decision: 'approve' })
  const at = { approvalId: approval, incidentId: null, token, caller: person.operatorId, via: 'page' }
  await decide(db, { ...at, decision: 'approve' })
  return { incident, approval }
}

test('an incident and the audit log show the verified rows, and name a changed row', async () => {
  const { incident, approval } = await anApproved()
  const pages = await Promise.all(
    looks.map(([width, colorScheme]) =>
      signedIn(on.browser, on.spine, 'admin', {
        colorScheme,
        viewport: { width, height: width === 390 ? 844 : 900 },
      }),
    ),
  )
  for (const state of ['sound', 'altered'] as const) {
    if (state === 'altered') {
      // As somebody does it who has the services' own role, or more.
      await sql`update approval set expires_at = expires_at + interval '1 hour' where id = ${approval}`.execute(
        on.spine.db,
      )
      await sql`insert into operator (id, name, role) values ('opr_ghost', 'ghost', 'admin')`.execute(on.spine.db)
      await on.spine.owner.transaction().execute(async (trx) => {
        await sql`set local session_replication_role = replica`.execute(trx)
        await sql`update approval_decision set operator_id = 'opr_ghost' where approval_id = ${approval}`.execute(trx)
      })
    }
    for (const [at, [width, scheme]] of looks.entries()) {
      const page = pages[at]!
      for (const [name, path] of [
        ['incident', `/incidents/${incident}`],
        ['audit', '/audit'],
      ] as const) {
        await page.goto(`${on.spine.url}${path}`)
        const part = page.getByRole('region', { name: 'Verify' })
        await part.getByRole('button', { name: 'Verify' }).click()
        await part.getByText(state === 'sound' ? 'Nothing differs' : /differs? from the rows/).waitFor()
        const text = await part.innerText()
        expect(text).toMatch(/votes\s+1/)
        if (state === 'altered') {
          expect(text).toContain(`${approval}: decisions is`)
          expect(text).toContain(`${approval}: expiresAt is`)
          expect(text.includes('operator opr_ghost (ghost): it was made by nightshift_app')).toBe(name === 'audit')
        }
        await part.scrollIntoViewIfNeeded()
        await screenshot(page, `verify-${name}-${state}-${width}-${scheme}`)
        const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        expect([name, width, wide]).toEqual([name, width, 0])
      }
      expect(page.complaints).toEqual([])
    }
  }
  await Promise.all(pages.map((page) => page.context().close()))
})
