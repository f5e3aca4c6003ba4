import { mayDecideEverywhere } from '../../domain/approvers.ts'
import { digestOf } from '../../domain/digest.ts'
import {
  type PairTrust,
  pairName,
  type TrustLevel,
  type TrustPair,
  type TrustRecord,
  trustLevels,
} from '../../domain/trust.ts'
import { deciderOf, lockOperator } from '../access/operators.ts'
import { databaseTime } from '../clock.ts'
import type { Db } from '../connect.ts'
import type { Person } from '../incidents/close-incident.ts'
import { recordAudit } from '../log/audit.ts'
import type { SettingsReader } from '../settings.ts'
import { lockPair, setTrustOf, trustOf } from './levels.ts'
import { recordOf } from './record.ts'

type SetOutcome =
  | { outcome: 'set'; before: PairTrust }
  | { outcome: 'forbidden' | 'conflict' | 'moved_on'; message: string }

/** Computes the digest of a record that a person saw, so that a change can be detected. */
export const recordDigest = (record: TrustRecord): string => digestOf(record)

type SetTrust = {
  to: TrustLevel
  reason: string
  /** The digest of the pair's record on the person's screen. */
  seen: string
  /**
   * The risk of the tool itself. A person who may not decide about this risk may not let the tool
   * act.
   */
  risk: string
}

/**
 * Sets the level of a pair on behalf of a person. To raise the level, the person needs the right to
 * decide about the pair's writes now, and must have seen the current record. To lower the level,
 * the person needs neither.
 */
export async function setTrust(
  db: Db,
  person: Person,
  pair: TrustPair,
  { to, reason, seen, risk }: SetTrust,
  settings: SettingsReader,
): Promise<SetOutcome> {
  return await db.transaction().execute(async (trx) => {
    await lockPair(trx, pair)
    // Locks the person, so that somebody who was disabled since the request grants nothing.
    const operator = await lockOperator(trx, person.operatorId)
    if (!operator || operator.disabledAt !== null)
      return { outcome: 'forbidden', message: `${person.name} is disabled` }
    const before = await trustOf(trx, pair, settings)
    const set = await setTrustOf(trx, pair)
    const isConfirmation = set?.cause === 'upgrade' && before.level === to
    if (set && before.level === to && !isConfirmation)
      return { outcome: 'conflict', message: `the level is ${to} already` }
    // Treats a level that equals the level of new pairs as a raise, because it stays when the level
    // of new pairs is lowered.
    const isMore = to !== 'shadow' && trustLevels.indexOf(to) >= trustLevels.indexOf(before.level)
    if (isMore) {
      const refused = mayDecideEverywhere(deciderOf(operator), {
        risk,
        incidentType: pair.type,
        at: await databaseTime(trx),
      })
      if (refused) return { outcome: 'forbidden', message: refused }
      if (recordDigest(await recordOf(trx, pair)) !== seen)
        return { outcome: 'moved_on', message: 'the record changed since it was shown: read it again' }
    }
    await trx
      .insertInto('trustChange')
      .values({
        incidentType: pair.type,
        tool: pair.tool,
        level: to,
        cause: 'person',
        setBy: person.operatorId,
        incidentId: null,
      })
      .execute()
    const detail = `From ${before.level} to ${to}: ${reason}`
    await recordAudit(trx, { who: person.name, what: 'trust.set', subject: pairName(pair), detail })
    return { outcome: 'set', before }
  })
}
