import { z } from '@hono/zod-openapi'
import { type OperatorRow, operatorById, operatorByName } from '../../db/access/operators.ts'
import { listTokens, mintToken, revokeToken, type TokenRow, tokenRow } from '../../db/access/tokens.ts'
import type { Db } from '../../db/connect.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { scopeOf } from '../../db/scope.ts'
import { type ApiToken, apiToken, newApiToken } from '../../domain/api-token.ts'
import { type Authority, excessAuthority } from '../../domain/authority.ts'
import { describeToken } from '../../domain/authority-words.ts'
import { isPersonRole, type Principal, permissions, role, scope, weakerRole } from '../../domain/permissions.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { authorityOf } from './operators.ts'

const tag = 'tokens'
const params = z.object({ id: z.string().max(100) })
const daySeconds = 24 * 3600

const example: ApiToken = {
  id: 'tok_01kahnv4q2e8w9r7c5x3m1t6zp',
  name: 'anna, laptop',
  prefix: 'nst_ab12…',
  kind: 'token',
  role: 'approver',
  scopes: ['type:disk_pressure'],
  operator: 'anna',
  createdAt: '2026-11-21T01:46:02.000000Z',
  expiresAt: '2027-02-19T01:46:02.000000Z',
  lastUsedAt: null,
  revokedAt: null,
}

const wanted = z.strictObject({
  name: z
    .string()
    .trim()
    .regex(/^[\w.,:@/ -]{1,64}$/, 'must be letters, digits, spaces and . , : @ / _ -, at most 64'),
  role,
  operator: z.string().max(64).nullable().default(null),
  scopes: z.array(scope).max(20).default([]),
  expiresInDays: z.number().int().min(1).max(3650).nullable().default(90),
})

const listTokensEndpoint = endpoint({
  method: 'get',
  path: '/tokens',
  permission: 'manage_tokens',
  tag,
  summary: 'Tokens without their secrets, newest first',
  query: z.object(pageQuery),
  answer: pageOf(apiToken),
  example: { items: [example], nextCursor: null },
  async run({ scope, query: { limit, cursor } }) {
    const rows = await listTokens(scope, { before: cursor ?? null, limit: limit + 1 })
    const { items, nextCursor } = page(rows, limit, (last) => last.id)
    return { items: items.map(toApiToken), nextCursor }
  },
})

const createTokenEndpoint = endpoint({
  method: 'post',
  path: '/tokens',
  permission: 'manage_tokens',
  tag,
  summary: 'Mints a token',
  description:
    'Only this response contains the plain token, so no response is stored under an `Idempotency-Key`. A token of a person belongs to `operator` (default: the caller) and never has more rights than that person. Tokens of agents and alert senders belong to nobody, and only they may be valid forever (`expiresInDays: null`). `scopes` limit the role: permissions, or `type:<incident type>`.',
  body: wanted,
  bodyExample: {
    name: 'anna, laptop',
    role: 'approver',
    operator: 'anna',
    scopes: ['type:disk_pressure'],
    expiresInDays: 90,
  },
  answer: newApiToken,
  example: { ...example, token: 'nst_…43 characters…' },
  status: 201,
  problems: [422],
  secret: true,
  async run({ body, principal }, { db }) {
    const owner = await ownerOf(db, body, principal)
    const asking = principal.operatorId ? await operatorById(db, principal.operatorId) : null
    refuseTooMuch(body, owner, authorityOf(principal, asking))
    const operatorId = owner?.id ?? null
    const { name, role, scopes, expiresInDays } = body
    const expirySeconds = expiresInDays === null ? undefined : expiresInDays * daySeconds
    const { plain, row } = await db.transaction().execute(async (trx) => {
      const minted = await mintToken(trx, { name, role, operatorId, scopes, expirySeconds })
      const detail = `Minted ${describeToken(minted.row)}: ${minted.row.name}`
      await recordAudit(trx, { who: principal.name, what: 'token.minted', subject: minted.row.id, detail })
      return minted
    })
    return { ...toApiToken(row), token: plain }
  },
})

const revokeTokenEndpoint = endpoint({
  method: 'post',
  path: '/tokens/{id}/revoke',
  permission: 'manage_tokens',
  tag,
  summary: 'Revokes a token and its sessions',
  params,
  answer: apiToken,
  example: { ...example, revokedAt: '2026-11-21T01:50:00.000000Z' },
  problems: [404, 409],
  async run({ params: { id }, principal }, { db }) {
    if (id === principal.tokenId) {
      // Refuses to revoke the caller's own token. Without the last admin's token, nobody could
      // create another token.
      throw new Problem(
        409,
        'OWN_TOKEN',
        'You are using this token. Create another token, and revoke this one with it.',
      )
    }
    const row = await db.transaction().execute(async (trx) => {
      const revoked = await revokeToken(trx, id)
      const row = await tokenRow(trx, id)
      if (revoked && row) {
        const detail = `Revoked ${describeToken(row)}: ${row.name}`
        await recordAudit(trx, { who: principal.name, what: 'token.revoked', subject: id, detail })
      }
      return row
    })
    if (!row) throw notFound(`token ${id}`)
    return toApiToken(row)
  },
})

type Wanted = z.output<typeof wanted>

/**
 * Finds the owner of a token: null for a machine's token, otherwise a person with at least the role
 * of the token.
 */
async function ownerOf(db: Db, body: Wanted, principal: Principal): Promise<OperatorRow | null> {
  if (!isPersonRole(body.role)) {
    if (body.operator) throw invalid('operator', `a token of role ${body.role} belongs to nobody`)
    return null
  }
  if (body.expiresInDays === null) throw invalid('expiresInDays', "a person's token must expire: send a number of days")
  const owner = body.operator
    ? await operatorByName(scopeOf(db, principal), body.operator)
    : principal.operatorId && (await operatorById(db, principal.operatorId))
  if (!owner)
    throw invalid('operator', body.operator ? `there is no operator ${body.operator}` : 'name the owner of the token')
  if (weakerRole(body.role, owner.role) !== body.role) {
    throw invalid('role', `${owner.name} is ${owner.role}: a token cannot have a higher role`)
  }
  return owner
}

/**
 * Refuses rights that the giver lacks: a limited token creates no token with more rights, and no
 * token of a person with more rights.
 */
function refuseTooMuch({ role, scopes }: Wanted, owner: OperatorRow | null, giver: Authority): void {
  const foreign = scopes.find((each) => !each.startsWith('type:') && !(permissions[role] as string[]).includes(each))
  if (foreign) throw invalid('scopes', `${role} has no permission ${foreign}`)
  if (!isPersonRole(role) && scopes.some((each) => each.startsWith('type:'))) {
    throw invalid('scopes', `a token of role ${role} is for all incident types or none`)
  }
  const wanted = authorityOf({ role, scopes }, owner)
  const more = excessAuthority(giver, wanted, null)
  if (more.length > 0) {
    throw new Problem(403, 'TOO_STRONG', `This token would have rights that yours lacks: ${more.join(', ')}.`)
  }
}

function invalid(field: string, message: string): Problem {
  return new Problem(422, 'INVALID', `${field}: ${message}`, { fields: { errors: [{ in: 'body', field, message }] } })
}

function toApiToken(row: TokenRow): ApiToken {
  return { ...row, prefix: row.kind === 'sign_in' ? row.prefix : `${row.prefix}…` }
}

export const tokenRoutes = [listTokensEndpoint, createTokenEndpoint, revokeTokenEndpoint]
