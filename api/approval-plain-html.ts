import { createHash } from 'node:crypto'
import { type Approval, denialCategory, type Evidence, tellEvidence } from '../domain/approval.ts'
import { type DryRunPlan, planOfDryRun } from '../domain/dry-run-plan.ts'
import { hiddenCharacter, nameOfCharacter } from '../domain/hidden-characters.ts'
import { tellConsequences, tellSettled } from '../domain/told-consequences.ts'
import { tellDown, tellProof, tellStanding, tellWhyDown } from '../domain/told-plan.ts'
import { type ToldRehearsal, toldRehearsal } from '../domain/told-rehearsal.ts'
import { tellProofOfWrite } from '../domain/told-verification.ts'
import { escapeHtml } from './escape-html.ts'

const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1rem;color:light-dark(#1c2130,#e3e6ee);background:light-dark(#fdfcf9,#10131b)}
body{overflow-wrap:anywhere}h1{font-size:1.25rem}h2{font-size:1rem;margin:1.4rem 0 .3rem}
pre{white-space:pre-wrap;padding:.7rem;background:light-dark(#ebe8df,#0b0e15);border:1px solid light-dark(#d8d4c8,#293042);border-radius:5px;font:14px/1.45 ui-monospace,monospace}
label{display:block;padding:.3rem 0;min-height:24px}textarea,input[type=password]{box-sizing:border-box;width:100%;font:inherit;padding:.4rem;color:inherit;background:transparent;border:1px solid light-dark(#8d8a80,#66708a);border-radius:5px}
button{font:inherit;min-height:44px;padding:.4rem 1.2rem;border:1px solid currentColor;border-radius:5px;background:transparent;color:inherit}
form{margin:0;padding:0 0 .6rem}fieldset{border:0;margin:0;padding:0;min-width:0}a{color:light-dark(#1f4e8c,#93bbf2)}
.said{padding:.6rem .8rem;border:2px solid light-dark(#8a4b00,#f3bd66);border-radius:5px}`

/** The one style sheet is named by its hash: nothing else that says it is style, and no script at all, is heeded. */
export const plainPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

export function plainSignIn(id: string, said: string | null): string {
  return page(
    'Sign in',
    `<h1>An approval waits</h1>${told(said)}
<p>If you are signed in here and came from a message, <a href="/approvals/${id}/plain">open it once more</a>: a browser does not tell other sites who you are.</p>
<form method="post" action="/approvals/${id}/plain"><label for="token">API token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required><p><button>Sign in</button></p></form>`,
  )
}

/** The card in the order of the page: what, risk, exact arguments, why, proof, dry run, until when, and then the two ways to decide. */
export function plainApproval(
  approval: Approval & { evidence: Evidence[] },
  asked: { name: string; may: boolean; said: string | null },
  now = Date.now(),
): string {
  const { dryRun, targets } = approval
  const left = Math.floor((Date.parse(approval.expiresAt) - now) / 60_000)
  const isOpen = approval.status === 'pending' && Date.parse(approval.expiresAt) > now
  const named = targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')
  const decisions = approval.decisions.map(
    ({ operator, decision, reason }) =>
      `<p><b>${decision === 'approve' ? 'Approved' : 'Denied'} by ${text(operator)}</b>${reason ? `: ${text(reason)}` : ''}</p>`,
  )
  return page(
    'Approval',
    `${told(asked.said)}<p><code>${text(approval.tool)}</code></p><h1>${text(dryRun.summary)}</h1><p>on ${text(named || 'no named target')}</p>
<p><b>${text(approval.risk)} risk</b>, ${approval.reversible ? 'reversible' : '<b>cannot be undone</b>'}; ${approval.approvals} of ${approval.required} approvals given</p>${downHtml(planOfDryRun(dryRun.details))}
${consequencesHtml(approval, isOpen)}
<h2>Exact arguments</h2>${exact(approval.arguments)}
<h2>Why</h2><p>${text(approval.reason)}</p>${evidenceHtml(approval)}<p><a href="/incidents/${approval.incidentId}">The whole incident</a></p>
<h2>What will prove it</h2>${proofHtml(approval)}
<h2>Dry run</h2>${dryRunHtml(approval)}
<h2>Until</h2><p>${text(utc(approval.expiresAt))}${isOpen ? `, in ${left} minutes` : `; it is ${text(approval.status)}`}</p>
${decisions.join('')}${isOpen ? (asked.may ? forms(approval) : '<p>Your role may read this, not decide it.</p>') : ''}
<p>Signed in as ${text(asked.name)}. <a href="/approvals/${approval.id}">The same with pictures</a></p>`,
  )
}

/** What follows from each answer, or what became of it. */
function consequencesHtml(approval: Approval, isOpen: boolean): string {
  const settled = tellSettled(approval)
  if (settled) return `<p class="said"><b>${text(settled)}</b></p>`
  if (!isOpen) return '<p class="said"><b>The time to decide is over: nothing was changed.</b></p>'
  const { approve, deny, wait } = tellConsequences(approval, utc)
  return `<p><b>If you approve</b> ${text(approve)}</p><p><b>If you deny</b> ${text(deny)}</p><p><b>If you do nothing</b> ${text(wait)}</p>`
}

function utc(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')} UTC`
}

function evidenceHtml({ incidentId, evidence }: { incidentId: string; evidence: Evidence[] }): string {
  const rows = evidence.map(
    (row) => `<li><a href="/incidents/${incidentId}#e-${row.seq}">row ${row.seq}</a> ${text(tellEvidence(row))}</li>`,
  )
  return rows.length > 0 ? `<ul>${rows.join('')}</ul>` : ''
}

/** Where nothing will, it cannot be missed. */
function proofHtml({ dryRun: { proof } }: Approval): string {
  const told = text(tellProofOfWrite(proof))
  return proof?.by === 'state' ? `<p>${told}</p>` : `<div class="said"><b>${told}</b></div>`
}

function dryRunHtml({ dryRun }: Approval): string {
  const none = dryRun.possible ? '' : '<p><b>There is none for this action.</b></p>'
  const rehearsal = toldRehearsal(dryRun.details)
  if (rehearsal) return `${none}${rehearsalHtml(rehearsal)}`
  if (!dryRun.possible) return none
  const plan = planOfDryRun(dryRun.details)
  if (!plan) return exact(dryRun.details)
  const steps = plan.steps.map(({ action, vm, from, to, wave }) => {
    const when = wave === null ? '' : ` (wave ${wave})`
    return `<li>${text(`${action} ${vm}${from ? ` from ${from}` : ''} to ${to}${when}`)}</li>`
  })
  const proof = tellProof(plan, plan.proof)
  return [
    `<ol>${steps.join('')}</ol>`,
    proof === '' ? '' : `<p>${text(`${proof}.`)}</p>`,
    plan.standing === null ? '' : `<p>${text(tellStanding(plan.standing))}</p>`,
  ].join('\n')
}

function rehearsalHtml({ lines, untried }: ToldRehearsal): string {
  const found = lines.length > 0 ? `<pre dir="ltr">${text(lines.join('\n'))}</pre>` : ''
  const left = untried.map((sentence) => `<li>${text(sentence)}</li>`)
  return left.length > 0 ? `${found}<div class="said"><ul>${left.join('')}</ul></div>` : found
}

/** Who has no place, where it cannot be missed. */
function downHtml(plan: DryRunPlan | null): string {
  if (!plan || plan.unplaced.length === 0) return ''
  const each = plan.unplaced.map(({ vm, reason }) => `<li><b>${text(vm)}</b>: ${text(reason)}</li>`)
  return `<div class="said"><b>${text(tellDown(each.length))}</b><ul>${each.join('')}</ul>${text(tellWhyDown(plan.obstacle))}</div>`
}

function forms({ id, dryRun }: Approval): string {
  const choices = denialCategory.options.map(
    (each) =>
      `<label><input type="radio" name="category" value="${each}" required> ${each.replaceAll('_', ' ')}</label>`,
  )
  return `<h2>Deny</h2><form method="post" action="/approvals/${id}/plain"><fieldset><legend>Why not?</legend>${choices.join('')}</fieldset>
<label for="reason">In your words (needed for other)</label><textarea id="reason" name="reason" rows="2" maxlength="1900"></textarea>
<p><button name="decision" value="deny">Deny</button></p></form>
<h2>Approve</h2><form method="post" action="/approvals/${id}/plain">
<label><input type="checkbox" name="sure" value="yes" required> I have read it: ${text(dryRun.summary)}</label>
<p><button name="decision" value="approve">Approve</button></p></form>`
}

function told(said: string | null): string {
  return said ? `<p class="said" role="alert">${text(said)}</p>` : ''
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title} · Nightshift</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${style}</style></head><body><main>
${body}</main></body></html>`
}

const odd = new RegExp(hiddenCharacter('\\u0000-\\u0008\\u000b-\\u001f'), 'gu')
/** Blanks that look like the one everybody knows and separate no words for a shell. */
const oddBlank = /[^\P{Zs} ]/gu

/** Text of a stranger: no markup, and what reorders or hides other text is written out. */
function text(value: string): string {
  return escapeHtml(value.replace(odd, nameOfCharacter))
}

/** Data exactly as it is. */
function exact(value: unknown): string {
  return `<pre dir="ltr">${text(JSON.stringify(value, null, 2).replace(oddBlank, nameOfCharacter))}</pre>`
}
