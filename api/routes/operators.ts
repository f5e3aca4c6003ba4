import { z } from '@hono/zod-openapi'
import {
  leavesAnAdmin,
  listOperators,
  type OperatorRow,
  operatorById,
  operatorByName,
  operatorElsewhere,
  putOperator,
} from '../../db/access/operators.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { type Authority, authorityOfPerson, authorityOfPrincipal, excessAuthority } from '../../domain/authority.ts'
import { describeOperator } from '../../domain/authority-words.ts'
import { type Operator, operator, operatorLimits, writtenRights } from '../../domain/operator.ts'
import { type Principal, permissions } from '../../domain/permissions.ts'
import { isUnusableName } from '../../domain/sign-in.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

const tag = 'operators'
/** What stands behind `user:` in rows: one word, so that it cannot read like another sentence. */
const operatorName = z
  .string()
  .regex(/^[A-Za-z0-9][\w.@+-]{0,63}$/, 'takes letters, digits and . @ + _ -, at most 64')
  .refine((name) => !isUnusableName(name), 'stands for nobody in particular in rows')
const params = z.object({ name: operatorName })
const slackUserId = z
  .string()
  .regex(/^[UW][A-Z0-9]{2,30}$/, 'is a member ID of Slack: U or W, then capitals and digits')

const pagerdutyUserId = z
  .string()
  .regex(
    /^[A-Z0-9]{3,30}$/,
    'is a user ID of PagerDuty: capitals and digits, as PLH1HKV at the end of their page there',
  )

const example: Operator = {
  id: 'opr_01kahnv4q2e8w9r7c5x3m1t6zp',
  name: 'anna',
  role: 'approver',
  maxRisk: 'high',
  incidentTypes: ['disk_pressure', 'replication_lag'],
  rights: ['critical database:orders-* until:2026-12-06T06:00:00.000Z'],
  permissions: [...permissions.approver],
  createdAt: '2026-11-21T01:46:02.000000Z',
  disabledAt: null,
  issuer: null,
  lastSeenAt: '2026-11-21T01:47:30.000000Z',
  slackUserId: 'U012AB3CD',
  pagerdutyUserId: 'PLH1HKV',
}

const listOperatorsEndpoint = endpoint({
  method: 'get',
  path: '/operators',
  permission: 'manage_operators',
  tag,
  summary: 'Users, by name, and what each may',
  query: z.object(pageQuery),
  answer: pageOf(operator),
  example: { items: [example], nextCursor: null },
  async run({ scope, query: { limit, cursor } }) {
    const rows = await listOperators(scope, { after: cursor ?? null, limit: limit + 1 })
    const { items, nextCursor } = page(rows, limit, (last) => last.name)
    return { items: items.map(toApiOperator), nextCursor }
  },
})

const getOperatorEndpoint = endpoint({
  method: 'get',
  path: '/operators/{name}',
  permission: 'manage_operators',
  tag,
  summary: 'One person, and what they may',
  params,
  answer: operator,
  example,
  problems: [404],
  async run({ scope, params: { name } }) {
    const row = await operatorByName(scope, name)
    if (!row) throw notFound(`operator ${name}`)
    return toApiOperator(row)
  },
})

const setOperatorEndpoint = endpoint({
  method: 'put',
  path: '/operators/{name}',
  permission: 'manage_operators',
  tag,
  summary: 'Makes a person, or changes what they may',
  description:
    'Holds at once, for every token, session and decision token they have: a token is worth no more than its person. Who is disabled comes in nowhere. Nobody makes less of themselves, so that one admin always remains. Nobody grants what they do not have: permissions, risks, incident types and rights beyond those of the token that asks are refused. With `If-None-Match: *` only where nobody has the name, else 412.',
  params,
  headers: z.object({ 'if-none-match': z.literal('*').optional() }),
  body: z.strictObject({
    ...operatorLimits,
    disabled: z.boolean(),
    /** Left out: unchanged. */
    rights: writtenRights.optional(),
    /** Left out: unchanged. Null: no Slack member. */
    slackUserId: slackUserId.nullable().optional(),
    /** Left out: unchanged. Null: nobody at PagerDuty. */
    pagerdutyUserId: pagerdutyUserId.nullable().optional(),
    /** For the audit. */
    reason: z.string().max(500).trim().nullable().default(null),
  }),
  bodyExample: {
    role: 'approver',
    maxRisk: 'high',
    incidentTypes: ['disk_pressure'],
    rights: ['critical database:orders-* until:2026-12-06'],
    disabled: false,
    reason: 'on call for storage from Monday',
  },
  answer: operator,
  example,
  problems: [409, 412],
  async run({ scope, params: { name }, body: { reason, ...body }, principal, c }, { db }) {
    const asking = principal.operatorId ? await operatorById(db, principal.operatorId) : null
    const own = asking?.name === name ? asking : null
    if (own && excessAuthority(authorityOfPerson({ rights: own.rights, ...body }), personal(own), null).length > 0) {
      throw new Problem(409, 'OWN_ROLE', 'You cannot reduce your own rights. Ask another admin.')
    }
    return await db.transaction().execute(async (trx) => {
      const known = await operatorByName(scope, name)
      if (known && c.req.header('if-none-match') === '*') {
        throw new Problem(412, 'NAME_TAKEN', `${name} is here already.`)
      }
      if (known?.issuer && known.role !== body.role) {
        // Set here, it would hold until the person's next sign-in and change back without a visible
        // reason.
        throw new Problem(409, 'ROLE_OF_PROVIDER', `The role of ${name} comes from the groups at ${known.issuer}.`)
      }
      for (const [column, code] of elsewhere) {
        const holder = body[column] ? await operatorElsewhere(trx, column, body[column]) : null
        if (holder && holder.name !== name)
          throw new Problem(409, code, `${body[column]} is ${holder.name} here already.`)
      }
      const endsAdmin = known?.role === 'admin' && known.disabledAt === null && (body.role !== 'admin' || body.disabled)
      if (endsAdmin && !(await leavesAnAdmin(trx, known.id)))
        throw new Problem(409, 'LAST_ADMIN', `${name} is the only admin. Make another admin first.`)
      const { before, now } = await putOperator(trx, { name, ...body })
      // Compared with the row as it was locked: what is refused here is rolled back.
      refuseBeyond(authorityOf(principal, asking), before, now)
      const what = before ? 'operator.changed' : 'operator.added'
      const change = before
        ? `From ${describeOperator(before)} to ${describeOperator(now)}`
        : `As ${describeOperator(now)}`
      if (!before || describeOperator(before) !== describeOperator(now)) {
        const detail = reason ? `${change}: ${reason}` : change
        await recordAudit(trx, { who: principal.name, what, subject: name, detail })
      }
      return toApiOperator(now)
    })
  },
})

/** Where else a person acts as themselves; one id is one person. */
const elsewhere = [
  ['slackUserId', 'SLACK_USER_TAKEN'],
  ['pagerdutyUserId', 'PAGERDUTY_USER_TAKEN'],
] as const

/**
 * Refuses rights that the giver lacks. An ID at Slack or PagerDuty counts: its holder acts with all
 * the person's rights.
 */
function refuseBeyond(giver: Authority, before: OperatorRow | null, now: OperatorRow): void {
  const isHandedOn = elsewhere.some(([column]) => now[column] !== null && now[column] !== before?.[column])
  const more = excessAuthority(giver, personal(now), before && !isHandedOn ? personal(before) : null)
  if (more.length === 0) return
  throw new Problem(
    403,
    'TOO_STRONG',
    `You would give ${now.name} rights that you lack: ${more.join(', ')}. Ask somebody who has them.`,
  )
}

function personal(row: OperatorRow): Authority {
  return authorityOfPerson({ ...row, disabled: row.disabledAt !== null })
}

/**
 * Rights that the caller may grant. A caller without a person decides nothing, and grants no
 * decisions.
 */
export function authorityOf(principal: Pick<Principal, 'role' | 'scopes'>, person: OperatorRow | null): Authority {
  return authorityOfPrincipal(principal, person ?? { maxRisk: 'none', incidentTypes: [], rights: [] })
}

function toApiOperator(row: OperatorRow): Operator {
  return { ...row, permissions: [...permissions[row.role]] }
}

export const operatorRoutes = [listOperatorsEndpoint, getOperatorEndpoint, setOperatorEndpoint]
