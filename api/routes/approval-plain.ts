import type { Hono } from 'hono'
import { decide } from '../../db/approvals/decide.ts'
import { causeOf } from '../../db/approvals/evidence.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { mintDecisionToken } from '../../db/approvals/tokens.ts'
import { scopeOf, systemScope } from '../../db/scope.ts'
import { type DecisionBody, denialCategory } from '../../domain/approval.ts'
import { type Principal, permissionsOf } from '../../domain/permissions.ts'
import { byCall } from '../../domain/step-key.ts'
import type { ApiDeps, Context, Env } from '../deps.ts'
import { requireOwnOrigin, signedIn } from '../http/authenticate.ts'
import { requireMediaType } from '../http/body.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { limitDecisions } from '../http/rate-limits.ts'
import { askForDecision, readDetail } from './approval-detail.ts'
import { plainApproval, plainPolicy, plainSignIn } from './approval-html.ts'
import { wake } from './approvals.ts'
import { signIn } from './session.ts'
import { signpostId } from './signpost.ts'

/**
 * An approval without JavaScript, for a phone's mail reader and a minimal browser. The usual rules
 * apply: session, Origin, permission, and a token for exactly this decision.
 */
export function plainApprovalRoutes(app: Hono<Env>, deps: ApiDeps): void {
  const { db, publicUrl } = deps
  const path = '/approvals/:id/plain'
  app.use(path, limitBody)

  app.get(path, async (c) => {
    const id = idOf(c)
    const principal = await signedIn(db, c, publicUrl)
    if (!principal) return answerHtml(c, plainSignIn(id, null), 401)
    return await show(c, deps, id, principal)
  })

  app.post(path, async (c) => {
    const id = idOf(c)
    requireOwnOrigin(c, publicUrl)
    const form = await formOf(c)
    if (form.token) {
      try {
        await signIn(deps, c, { token: form.token })
      } catch (error) {
        if (error instanceof Problem) return answerHtml(c, plainSignIn(id, error.message), error.status)
        throw error
      }
      return c.redirect(c.req.path, 303)
    }
    const principal = await signedIn(db, c, publicUrl)
    if (!principal) return answerHtml(c, plainSignIn(id, 'Your session has ended. Nothing was decided.'), 401)
    const said = await decideByForm(deps, c, id, principal, form)
    return await show(c, deps, id, principal, said)
  })
}

type Form = {
  token?: string
  decision?: string
  sure?: string
  category?: string
  reason?: string
  also: string[]
  /** The hosts that the person ticked as off. */
  hostIsOff: string[]
}
type Said = { text: string; status: number }

async function decideByForm(deps: ApiDeps, c: Context, id: string, principal: Principal, form: Form): Promise<Said> {
  if (form.decision !== 'approve' && form.decision !== 'deny') return { text: 'Choose what to do.', status: 422 }
  if (form.decision === 'approve' && form.sure !== 'yes') {
    return { text: 'Nothing was decided. First tick that you have read what will be done.', status: 422 }
  }
  const category = denialCategory.safeParse(form.category)
  const reason = form.reason?.trim() || (category.success ? category.data.replaceAll('_', ' ') : null)
  if (form.decision === 'deny' && (!category.success || (category.data === 'other' && !form.reason?.trim()))) {
    return { text: 'Nothing was decided. A denial needs a reason, which the agent reads.', status: 422 }
  }
  const verdict: Verdict = {
    decision: form.decision,
    reason: form.decision === 'deny' ? reason : null,
    category: form.decision === 'deny' && category.success ? category.data : null,
  }
  const also = await idsOnCard(deps, id, form.also)
  if (also === null)
    return {
      text: 'Nothing was decided. A ticked call is not on this card, or must be decided on its own page.',
      status: 422,
    }
  // Decides the form's own call last, so that all calls are decided when the run continues.
  for (const [recorded, each] of [...also, id].entries()) {
    // Uses the statement that a host is off only for this plan, not for another plan that is
    // ticked.
    const own = each === id && form.decision === 'approve' && form.hostIsOff.length > 0
    const said = await decideOne(deps, c, each, principal, { ...verdict, ...(own && { hostIsOff: form.hostIsOff }) })
    if (said.status !== 200 && recorded > 0)
      return {
        ...said,
        text: `${recorded} of ${also.length + 1} decisions are recorded. The next decision is not: ${said.text}`,
      }
    if (said.status !== 200 || each === id) return said
  }
  return { text: 'Choose what to do.', status: 422 }
}

type Verdict = Pick<DecisionBody, 'decision' | 'reason' | 'category'> & Partial<Pick<DecisionBody, 'hostIsOff'>>

/**
 * Lists the ticked calls, the last first. Null if a ticked call is not on this card, or is
 * critical.
 */
async function idsOnCard(deps: ApiDeps, id: string, also: readonly string[]): Promise<string[] | null> {
  if (also.length === 0) return []
  const scope = systemScope(deps.db)
  const [own] = await listApprovals(scope, { id }, { before: null, limit: 1 })
  const onCard = own?.askedWith
    ? await listApprovals(scope, { askedWith: own.askedWith }, { before: null, limit: 100 })
    : []
  const ticked = onCard.filter((each) => each.id !== id && each.risk !== 'critical' && also.includes(each.id))
  if (ticked.length !== new Set(also).size) return null
  return ticked.sort((a, b) => byCall(b, a)).map((each) => each.id)
}

async function decideOne(deps: ApiDeps, c: Context, id: string, principal: Principal, verdict: Verdict): Promise<Said> {
  try {
    await limitDecisions(deps.db, c, principal, id)
  } catch (error) {
    if (error instanceof Problem) return { text: `Nothing was decided: ${error.message}`, status: error.status }
    throw error
  }
  const minted = await mintDecisionToken(deps.db, principal, id, verdict)
  if (minted.outcome !== 'minted') {
    const status = { not_found: 404, forbidden: 403, gone: 410 }[minted.outcome]
    return { text: `Nothing was decided: ${minted.message}.`, status }
  }
  const at = { approvalId: id, incidentId: null, token: minted.token, caller: principal.operatorId, via: 'page' }
  const asked = verdict.decision === 'approve' ? { asked: await askForDecision(deps, id) } : {}
  const decided = await decide(deps.db, { ...verdict, ...at, ...asked })
  if (!('approvalId' in decided)) {
    deps.metrics.refusedDecisions.inc({ outcome: decided.outcome })
    const message = 'message' in decided ? decided.message : 'there is no such approval'
    const status = { not_found: 404, forbidden: 403, conflict: 409, gone: 410 }[decided.outcome]
    return { text: `Nothing was decided: ${message}.`, status }
  }
  if (decided.outcome === 'recorded') {
    await wake(deps, decided.incidentId)
  }
  return {
    text: decided.outcome === 'recorded' ? 'Your decision is recorded.' : 'You had already made this decision.',
    status: 200,
  }
}

async function show(c: Context, deps: ApiDeps, id: string, principal: Principal, said?: Said): Promise<Response> {
  const scope = scopeOf(deps.db, principal)
  const [approval] = permissionsOf(principal).includes('read')
    ? await listApprovals(scope, { id }, { before: null, limit: 1 })
    : []
  if (!approval) throw new Problem(404, 'NOT_FOUND', `There is no approval ${id}.`)
  const may = permissionsOf(principal).includes('decide')
  const [detail, cause] = await Promise.all([readDetail(deps, scope, approval), causeOf(scope, approval)])
  const asked = { name: principal.name, may, said: said?.text ?? null }
  return answerHtml(c, plainApproval({ ...detail, cause }, asked), said?.status ?? 200)
}

function answerHtml(c: Context, page: ReturnType<typeof plainApproval>, status: number) {
  c.header('content-security-policy', plainPolicy)
  // Sets `same-origin`: with `no-referrer` a browser would send a null origin with the form of this
  // page.
  c.header('referrer-policy', 'same-origin')
  return c.html(page, status as 200)
}

function idOf(c: Context): string {
  const id = c.req.param('id') ?? ''
  if (!signpostId.test(id)) throw new Problem(404, 'NOT_FOUND', 'There is no such approval.')
  return id
}

/** Reads the form that a browser sends. Refuses a body in any other form. */
async function formOf(c: Context): Promise<Form> {
  requireMediaType(c, ['application/x-www-form-urlencoded'])
  // Removes U+0000, which no person types in a reason.
  const sent = new URLSearchParams((await c.req.text()).replaceAll('%00', '').replaceAll('\0', ''))
  return {
    ...Object.fromEntries(sent),
    also: sent.getAll('also').slice(0, 20),
    hostIsOff: sent.getAll('hostIsOff').slice(0, 50),
  }
}
