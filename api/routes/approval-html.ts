import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import {
  type Approval,
  type ApprovalDetail,
  type CallRun,
  denialCategory,
  type Evidence,
  formatEvidence,
  type NextCall,
} from '../../domain/approval.ts'
import {
  type CardSection,
  cardSections,
  formatApprovers,
  formatProof,
  newestLookOf,
} from '../../domain/card-sections.ts'
import type { JudgedDeath } from '../../domain/death.ts'
import { formatMinute } from '../../domain/format.ts'
import {
  formatApprovalEnd,
  formatAttachment,
  formatNextCall,
  formatReversible,
  formatRunOutcome,
  formatUnheard,
  isReadExactly,
  parseRehearsal,
  partTitles,
  pathOfAttachment,
} from '../../domain/format-approval.ts'
import { formatDispute, formatHostToSay, hostsToSay } from '../../domain/format-death.ts'
import { formatPlanProof, formatStanding } from '../../domain/format-plan.ts'
import { hiddenCharacter, nameOfCharacter } from '../../domain/inert-text.ts'
import { planOfDryRun } from '../../domain/placement.ts'

const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1rem;color:light-dark(#1c2130,#e3e6ee);background:light-dark(#fdfcf9,#10131b)}
body{overflow-wrap:anywhere}h1{font-size:1.25rem}h2{font-size:1rem;margin:1.4rem 0 .3rem}
pre{white-space:pre-wrap;padding:.7rem;background:light-dark(#ebe8df,#0b0e15);border:1px solid light-dark(#d8d4c8,#293042);border-radius:5px;font:14px/1.45 ui-monospace,monospace}
label{display:block;padding:.3rem 0;min-height:24px}textarea,input[type=password]{box-sizing:border-box;width:100%;font:inherit;padding:.4rem;color:inherit;background:transparent;border:1px solid light-dark(#8d8a80,#66708a);border-radius:5px}
button{font:inherit;min-height:44px;padding:.4rem 1.2rem;border:1px solid currentColor;border-radius:5px;background:transparent;color:inherit}
form{margin:0;padding:0 0 .6rem}fieldset{border:0;margin:0;padding:0;min-width:0}a{color:light-dark(#1f4e8c,#93bbf2)}
img{max-width:100%;height:auto}.said{padding:.6rem .8rem;border:2px solid light-dark(#8a4b00,#f3bd66);border-radius:5px}`

/**
 * The content policy of a card. It allows the card's style sheet by its hash, no other style, and
 * no script.
 */
export const plainPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "img-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

type Html = ReturnType<typeof html>

export function plainSignIn(id: string, message: string | null): Html {
  return page(
    'Sign in',
    html`<h1>An approval waits</h1>${messageHtml(message)}
<p>If you are signed in here and came from a message, <a href="/approvals/${id}/plain">open it once more</a>: a browser does not tell other sites who you are.</p>
<form method="post" action="/approvals/${id}/plain"><label for="token">API token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required><p><button>Sign in</button></p></form>`,
  )
}

/**
 * Renders the card with the content that the page shows: action, risk, outcome, sections, dry run,
 * exact arguments, next calls, expiry, and the two decisions.
 */
export function plainApproval(
  approval: Approval &
    Pick<
      ApprovalDetail,
      'unheardAt' | 'evidence' | 'run' | 'next' | 'together' | 'approvers' | 'asked' | 'about' | 'deaths'
    > & {
      cause?: string | null
    },
  reader: { name: string; may: boolean; said: string | null },
  now = Date.now(),
): Html {
  const { dryRun, cause = null } = approval
  const left = Math.floor((Date.parse(approval.expiresAt) - now) / 60_000)
  const isOpen = approval.status === 'pending' && Date.parse(approval.expiresAt) > now
  const sections = cardSections(approval, {
    ...{ isOpen, moment: utc, cause, maxNamed: Number.POSITIVE_INFINITY },
    ...{ about: approval.about, lookedAt: newestLookOf(approval.evidence), deaths: approval.deaths },
  })
  return page(
    'Approval',
    html`${messageHtml(reader.said)}${messageHtml(approval.unheardAt && formatUnheard(formatMinute(approval.unheardAt)))}<p><code>${text(approval.tool)}</code></p><h1>${text(dryRun.summary)}</h1>
<p><b>${text(approval.risk)} risk</b>, ${approval.reversible ? formatReversible(true) : html`<b>${formatReversible(false)}</b>`}; ${approval.approvals} of ${approval.required} approvals given${isOpen ? `. ${text(formatApprovers(approval.approvers, approval.asked))}` : ''}</p>${approval.run ? '' : settledHtml(approval, isOpen)}${runHtml(approval.run)}
${sections.map((section) => sectionHtml(section, approval))}
<h2>${partTitles.dryRun}</h2>${dryRunHtml(approval)}${attachmentsHtml(approval)}
<h2>${partTitles.arguments}</h2>${argumentsHtml(approval)}${togetherHtml(approval)}${nextHtml(approval.next)}
<h2>Until</h2><p>${text(utc(approval.expiresAt))}${isOpen ? `, in ${left} minutes` : `; it is ${text(approval.status)}`}</p>
${decisionsHtml(approval)}${isOpen ? (reader.may ? formsHtml(approval, now) : html`<p>Your role may read this, not decide it.</p>`) : ''}
<p>Signed in as ${text(reader.name)}. <a href="/approvals/${approval.id}">The same with pictures</a></p>`,
  )
}

/** Renders a section of the card. Warnings are in a box, and the reason lists its log rows. */
function sectionHtml(
  { name, title, sentences, warns }: CardSection,
  approval: Parameters<typeof evidenceHtml>[0],
): Html {
  const said = sentences.map((sentence) => html`<p>${text(sentence)}</p>`)
  const rows =
    name === 'reason'
      ? html`${evidenceHtml(approval)}<p><a href="/incidents/${approval.incidentId}">The whole incident</a></p>`
      : ''
  return html`<h2>${title}</h2>${warns ? html`<div class="said">${said}</div>` : said}${rows}`
}

function decisionsHtml({ decisions }: Approval): Html[] {
  return decisions.map(
    ({ operator, decision, reason }) =>
      html`<p><b>${decision === 'approve' ? 'Approved' : 'Denied'} by ${text(operator)}</b>${reason ? `: ${text(reason)}` : ''}</p>`,
  )
}

/** Renders the arguments, folded if the title repeats them. */
function argumentsHtml(approval: Approval): Html {
  if (isReadExactly(approval)) return exactHtml(approval.arguments)
  return html`<details><summary>${text(Object.keys(approval.arguments).join(', ') || 'none')}</summary>${exactHtml(approval.arguments)}</details>`
}

/** Shows what the approved call has done so far. */
function runHtml(run: CallRun | null): Html | '' {
  if (!run) return ''
  const steps = run.steps.map(
    ({ text: what, state, detail }) => html`<li>${text(what)}: <b>${state}</b>${detail ? ` ${text(detail)}` : ''}</li>`,
  )
  return html`<h2>${run.endedAt === null ? partTitles.running : partTitles.ran}</h2><p><b>${formatRunOutcome(run)}</b> ${text(run.said)}</p>${steps.length > 0 ? html`<ol>${steps}</ol>` : ''}
${run.output.length > 0 ? html`<pre dir="ltr">${text(run.output.join('\n'))}</pre>` : ''}${run.verification ? html`<p>${text(run.verification.text)}</p>` : ''}`
}

/** Renders the other calls of the response on this card: effect, state, and their pages. */
function togetherHtml({ together }: Pick<ApprovalDetail, 'together'>): Html | '' {
  if (together.length === 0) return ''
  const each = together.map(
    (
      other,
    ) => html`<li><b>${text(other.dryRun.summary)}</b> (${text(other.risk)} risk, ${formatReversible(other.reversible)}; ${text(other.status)}) <a href="/approvals/${other.id}/plain">its own page</a>
${argumentsHtml(other)}<p>${text(formatProof(other.dryRun.proof))}</p></li>`,
  )
  return html`<h2>The same answer also asks</h2><ul>${each}</ul>`
}

/**
 * Renders a check box for each other call that this form can decide. A critical call is decided on
 * its own page.
 */
function alsoHtml({ together }: Pick<ApprovalDetail, 'together'>, now: number): Html | '' {
  const open = together.filter(
    ({ status, risk, expiresAt }) => status === 'pending' && risk !== 'critical' && Date.parse(expiresAt) > now,
  )
  const ticks = open.map(
    ({ id, dryRun }) =>
      html`<label><input type="checkbox" name="also" value="${id}"> also: ${text(dryRun.summary)}</label>`,
  )
  return ticks.length > 0 ? html`${ticks}` : ''
}

function nextHtml(next: NextCall[]): Html | '' {
  if (next.length === 0) return ''
  return html`<h2>${partTitles.next}</h2><ul>${next.map((call) => html`<li>${text(formatNextCall(call))}</li>`)}</ul>`
}

/** Renders the outcome of an approval that has ended. */
function settledHtml(approval: Approval, isOpen: boolean): Html | '' {
  const settled = formatApprovalEnd(approval)
  if (settled) return html`<p class="said"><b>${text(settled)}</b></p>`
  return isOpen ? '' : html`<p class="said"><b>The time to decide is over: nothing was changed.</b></p>`
}

function utc(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')} UTC`
}

function evidenceHtml({ incidentId, evidence }: { incidentId: string; evidence: Evidence[] }): Html | '' {
  const rows = evidence.map(
    (row) =>
      html`<li><a href="/incidents/${incidentId}#e-${row.seq}">row ${row.seq}</a> ${text(formatEvidence(row))}</li>`,
  )
  return rows.length > 0 ? html`<ul>${rows}</ul>` : ''
}

function dryRunHtml({ dryRun }: Approval): Html {
  const missing = dryRun.possible ? '' : html`<p><b>There is none for this action.</b></p>`
  const rehearsal = parseRehearsal(dryRun.details)
  if (rehearsal)
    return html`${missing}${rehearsal.lines.length > 0 ? html`<pre dir="ltr">${text(rehearsal.lines.join('\n'))}</pre>` : ''}`
  if (!dryRun.possible) return html`${missing}`
  const plan = planOfDryRun(dryRun.details)
  if (!plan) return exactHtml(dryRun.details)
  const steps = plan.steps.map(({ action, vm, from, to, wave }) => {
    const when = wave === null ? '' : ` (wave ${wave})`
    return html`<li>${text(`${action} ${vm}${from ? ` from ${from}` : ''} to ${to}${when}`)}</li>`
  })
  const proof = formatPlanProof(plan, plan.proof)
  return html`<ol>${steps}</ol>
${proof === '' ? '' : html`<p>${text(`${proof}.`)}</p>`}
${plan.standing === null ? '' : html`<p>${text(formatStanding(plan.standing))}</p>`}`
}

/**
 * Renders the attachments of the dry run: pictures, the first lines of texts, and sentences about
 * what was left out.
 */
function attachmentsHtml({ id, dryRun: { attachments = [], leftOut = [] } }: Approval): Html {
  const each = attachments.map((one) => {
    const path = pathOfAttachment(id, one)
    const shown =
      one.kind === 'png'
        ? html`<img src="${path}" alt="${text(one.name)}" width="${one.width}" height="${one.height}">`
        : html`<pre dir="ltr">${text(one.head ?? '')}</pre>`
    return html`<p><a href="${path}">${text(one.name)}</a> (${formatAttachment(one)})</p>${shown}`
  })
  const notes = leftOut.map((sentence) => html`<li>${text(sentence)}</li>`)
  return html`${each}${notes.length > 0 ? html`<div class="said"><ul>${notes}</ul></div>` : ''}`
}

/** Renders a check box for each host that only a person can state to be off. */
function hostsHtml(deaths: readonly JudgedDeath[]): Html[] {
  return hostsToSay(deaths).map(
    (host) =>
      html`<label><input type="checkbox" name="hostIsOff" value="${host}" required> ${text(formatHostToSay(host))}</label>`,
  )
}

function formsHtml(approval: Approval & Pick<ApprovalDetail, 'together' | 'deaths'>, now: number): Html {
  const { id, dryRun, deaths } = approval
  const also = alsoHtml(approval, now)
  const choices = denialCategory.options.map(
    (each) =>
      html`<label><input type="radio" name="category" value="${each}" required> ${each.replaceAll('_', ' ')}</label>`,
  )
  const dispute = formatDispute(deaths)
  const approve = dispute
    ? html`<p class="said">${text(dispute)}</p>`
    : html`<form method="post" action="/approvals/${id}/plain">
<label><input type="checkbox" name="sure" value="yes" required> I have read it: ${text(dryRun.summary)}</label>
${hostsHtml(deaths)}${also}<p><button name="decision" value="approve">Approve</button></p></form>`
  return html`<h2>Deny</h2><form method="post" action="/approvals/${id}/plain"><fieldset><legend>Why not?</legend>${choices}</fieldset>
<label for="reason">In your words (needed for other)</label><textarea id="reason" name="reason" rows="2" maxlength="1900"></textarea>
${also}<p><button name="decision" value="deny">Deny</button></p></form>
<h2>Approve</h2>${approve}`
}

function messageHtml(message: string | null): Html | '' {
  return message ? html`<p class="said" role="alert">${text(message)}</p>` : ''
}

function page(title: string, body: Html): Html {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="/icon.svg" type="image/svg+xml"><title>${title} · Nightshift</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${raw(style)}</style></head><body><main>
${body}</main></body></html>`
}

const odd = new RegExp(hiddenCharacter('\\u0000-\\u0008\\u000b-\\u001f'), 'gu')
/** Characters that look like a space but do not separate words in a shell. */
const oddBlank = /[^\P{Zs} ]/gu

/**
 * Renders untrusted text. Characters that reorder or hide text are replaced with their names.
 * `html` escapes the markup.
 */
function text(value: string): string {
  return value.replace(odd, nameOfCharacter)
}

/** Renders data exactly, character by character. */
function exactHtml(value: unknown): Html {
  return html`<pre dir="ltr">${text(JSON.stringify(value, null, 2).replace(oddBlank, nameOfCharacter))}</pre>`
}
