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
/** The name that follows `user:` in rows: one word, which cannot be taken for a sentence. */
const operatorName = z
  .string()
  .regex(/^[A-Za-z0-9][\w.@+-]{0,63}$/, 'must be letters, digits and . @ + _ -, at most 64')
  .refine((name) => !isUnusableName(name), 'is a reserved name')
const params = z.object({ name: operatorName })
const slackUserId = z
  .string()
  .regex(/^[UW][A-Z0-9]{2,30}$/, 'must be a member ID of Slack: U or W, then capitals and digits')

const pagerdutyUserId = z
  .string()
  .regex(
    /^[A-Z0-9]{3,30}$/,
    'must be a user ID of PagerDuty: capitals and digits, such as PLH1HKV, from the address of the user page',
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
  summary: 'Users by name, with their rights',
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
  summary: 'One user with their rights',
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
  summary: 'Adds a user, or changes their rights',
  description:
    'Takes effect at once for all tokens, sessions and decision tokens of the user, because a token never has more rights than its user. A disabled user cannot sign in. Nobody can reduce their own rights, so one admin always remains. Nobody can grant rights that the token of the request lacks. With `If-None-Match: *` only if the name is free, else 412.',
  params,
  headers: z.object({ 'if-none-match': z.literal('*').optional() }),
  body: z.strictObject({
    ...operatorLimits,
    disabled: z.boolean(),
    /** The further rights. If the field is absent, they stay unchanged. */
    rights: writtenRights.optional(),
    /** The Slack member. If absent, the member stays unchanged; null removes the member. */
    slackUserId: slackUserId.nullable().optional(),
    /** The PagerDuty user. If absent, the user stays unchanged; null removes the user. */
    pagerdutyUserId: pagerdutyUserId.nullable().optional(),
    /** The reason of the change, for the audit log. */
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
        throw new Problem(412, 'NAME_TAKEN', `${name} exists already.`)
      }
      if (known?.issuer && known.role !== body.role) {
        // Refuses a role for a person from a provider: it would last only until the person's next
        // sign-in, and change without a visible reason.
        throw new Problem(409, 'ROLE_OF_PROVIDER', `The role of ${name} comes from the groups at ${known.issuer}.`)
      }
      for (const [column, code] of elsewhere) {
        const holder = body[column] ? await operatorElsewhere(trx, column, body[column]) : null
        if (holder && holder.name !== name)
          throw new Problem(409, code, `${body[column]} belongs to ${holder.name} already.`)
      }
      const endsAdmin = known?.role === 'admin' && known.disabledAt === null && (body.role !== 'admin' || body.disabled)
      if (endsAdmin && !(await leavesAnAdmin(trx, known.id)))
        throw new Problem(409, 'LAST_ADMIN', `${name} is the only admin. Add another admin first.`)
      const { before, now } = await putOperator(trx, { name, ...body })
      // Compares the rights with the locked row. A refusal rolls the change back.
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

/** External services through which a person can act. One id at a service belongs to one person. */
const elsewhere = [
  ['slackUserId', 'SLACK_USER_TAKEN'],
  ['pagerdutyUserId', 'PAGERDUTY_USER_TAKEN'],
] as const

/**
 * Refuses rights that the giver lacks. Also refuses an id at Slack or PagerDuty of a person with
 * more rights, because the id's holder acts with all rights of the person.
 */
function refuseBeyond(giver: Authority, before: OperatorRow | null, now: OperatorRow): void {
  const isHandedOn = elsewhere.some(([column]) => now[column] !== null && now[column] !== before?.[column])
  const more = excessAuthority(giver, personal(now), before && !isHandedOn ? personal(before) : null)
  if (more.length === 0) return
  throw new Problem(
    403,
    'TOO_STRONG',
    `You would give ${now.name} rights that you lack: ${more.join(', ')}. Ask somebody who has these rights.`,
  )
}

function personal(row: OperatorRow): Authority {
  return authorityOfPerson({ ...row, disabled: row.disabledAt !== null })
}

/**
 * Returns the rights that the caller may grant. A caller that is not a person cannot grant
 * decisions.
 */
export function authorityOf(principal: Pick<Principal, 'role' | 'scopes'>, person: OperatorRow | null): Authority {
  return authorityOfPrincipal(principal, person ?? { maxRisk: 'none', incidentTypes: [], rights: [] })
}

function toApiOperator(row: OperatorRow): Operator {
  return { ...row, permissions: [...permissions[row.role]] }
}

export const operatorRoutes = [listOperatorsEndpoint, getOperatorEndpoint, setOperatorEndpoint]
