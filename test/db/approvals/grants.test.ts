import { expect, test } from '@jest/globals'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { requestApproval } from '../../../db/approvals/ask.ts'
import { storeGrant } from '../../../db/approvals/grants.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

test('a grant for the maximum of eight hours is stored, every time', async () => {
  const { db } = database
  const incidentId = await claimedIncident(db)
  const operatorId = await ensureOperator(db, 'anna', 'approver')
  await db.transaction().execute(async (trx) => {
    const { id } = await requestApproval(trx, {
      ...{ incidentId, attempt: 1, turn: 1, callId: 'c1_0', tool: 'converge_shard', args: { shard: 'web-osl-1' } },
      ...{ targets: [], reason: 'its files differ', actionDigest: 'digest', stateFingerprint: 'state', risk: 'low' },
      ...{ reversible: true, required: 1, dryRun: { possible: true, summary: 'writes 2 files', details: {} } },
      ...{ expirySeconds: 600, stepKey: `${incidentId}:ask`, replaces: null, actor: 'agent:incident-investigator' },
    })
    const approval = await trx.selectFrom('approval').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    // The clock is read anew for each value: the end must not be read a microsecond after the
    // beginning.
    for (let round = 0; round < 300; round += 1) await storeGrant(trx, approval, operatorId, { uses: 1, hours: 8 })
    const { count } = await trx
      .selectFrom('standingGrant')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    expect(count).toBe(300)
  })
})
