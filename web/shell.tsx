import { type ReactNode, useRef, useState } from 'react'
import { formatOffset } from '../domain/format.ts'
import { useAway } from './api.ts'
import { invalidateApprovals, usePendingApprovals } from './approvals/query.ts'
import { KeyHelp } from './keys.tsx'
import { useLive, useLiveState } from './live.tsx'
import { AwayBanner, Brand } from './page-frame.tsx'
import { ModelWarning } from './pages/health.tsx'
import { Palette } from './palette.tsx'
import { unsubscribeHere } from './push.tsx'
import { Link, usePlace } from './router.tsx'
import { routes } from './routes.tsx'
import { type BrowserSession, signOut } from './session.ts'
import { chooseZone, useZone, zones } from './time.ts'

const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const key = 'nightshift.theme'

function getTheme(): Theme {
  const stored = localStorage.getItem(key)
  return stored === 'light' || stored === 'dark' ? stored : 'auto'
}

/** `auto` follows the system; the other two stand on the root for the style sheet to read. */
export function applyTheme(chosen: Theme = getTheme()): void {
  if (chosen === 'auto') {
    localStorage.removeItem(key)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(key, chosen)
    document.documentElement.dataset.theme = chosen
  }
}

function ThemeSwitch() {
  const [chosen, choose] = useState(getTheme)
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Colours</legend>
      {themes.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          onClick={() => {
            applyTheme(each)
            choose(each)
          }}
        >
          {each}
        </button>
      ))}
    </fieldset>
  )
}

function ZoneSwitch() {
  const chosen = useZone()
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Times</legend>
      {zones.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          title={
            each === 'utc' ? 'Times in UTC' : `Times in your own zone, ${formatOffset(new Date().toISOString(), each)}`
          }
          onClick={() => chooseZone(each)}
        >
          {each === 'utc' ? 'UTC' : 'local'}
        </button>
      ))}
    </fieldset>
  )
}

const liveWords = { opening: 'Connecting…', live: 'Live', lost: 'Lost: reconnecting…' } as const

/** Signs out; this browser gets no more notifications, for the next person at it may be another. */
async function leaveDevice(): Promise<void> {
  await unsubscribeHere().catch(() => {})
  await signOut()
}

/** What is around every page: where one is, what waits, whether the stream runs, who one is. */
export function Shell({ session, children }: { session: BrowserSession; children: ReactNode }) {
  const stream = useLiveState()
  // What is asked goes unanswered: then nothing is live, however long the stream was silent.
  const live = useAway() && stream === 'live' ? 'lost' : stream
  const times = useZone()
  useLive((event) => {
    if (/^(approval_|grant_used|resolved|escalated|cancelled)/.test(event.kind)) invalidateApprovals()
  })
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="side">
        <Brand />
        <Palette />
        <Navigation />
        <div className="foot">
          <span className={`live ${live}`} role="status">
            <span>{liveWords[live]}</span>
          </span>
          <ThemeSwitch />
          <ZoneSwitch />
          <KeyHelp />
          <span className="who soft">
            {session.name} · {session.role}
          </span>
          <span className="who">
            <a href="/docs">API</a>
          </span>
          <button type="button" className="bare" onClick={() => void leaveDevice()}>
            Sign out
          </button>
        </div>
      </header>
      {/* Another zone is another text of every time: what is drawn once is drawn again. */}
      <main id="content" key={times}>
        <AwayBanner />
        <ModelWarning />
        {children}
      </main>
      <BottomBar session={session} />
    </div>
  )
}

const thumbPaths = ['/home', '/approvals', '/incidents']

/** On a phone: the three pages that are used at night within reach of a thumb, and all else behind *More*. */
function BottomBar({ session }: { session: BrowserSession }) {
  const { pathname } = usePlace()
  const { count } = usePendingApprovals()
  const more = useRef<HTMLDialogElement>(null)
  const at = pathname === '/' ? '/home' : pathname
  const isAt = (path: string) => (at.startsWith(path) ? 'page' : undefined)
  const leave = () => more.current?.close()
  return (
    <nav aria-label="Pages" className="bottom">
      {routes
        .filter(({ path }) => thumbPaths.includes(path))
        .sort((a, b) => thumbPaths.indexOf(a.path) - thumbPaths.indexOf(b.path))
        .map(({ path, title }) => (
          <Link key={path} href={path} aria-current={isAt(path)}>
            {title}
            {path === '/approvals' && count > 0 && <Waiting count={count} />}
          </Link>
        ))}
      <button type="button" aria-haspopup="dialog" onClick={() => more.current?.showModal()}>
        More
      </button>
      <dialog ref={more} className="more" aria-label="More pages and settings">
        <ul>
          {routes
            .filter(({ path }) => !thumbPaths.includes(path))
            .map(({ path, title }) => (
              <li key={path}>
                <Link href={path} aria-current={isAt(path)} onClick={leave}>
                  {title}
                </Link>
              </li>
            ))}
        </ul>
        <div className="row">
          <ThemeSwitch />
          <ZoneSwitch />
        </div>
        <p className="row apart">
          <span className="soft">
            {session.name} · {session.role}
          </span>
          <a href="/docs">API</a>
          <button type="button" onClick={() => void leaveDevice()}>
            Sign out
          </button>
        </p>
        <button type="button" onClick={leave}>
          Close
        </button>
      </dialog>
    </nav>
  )
}

function Waiting({ count }: { count: number }) {
  return (
    <span className="count">
      {count}
      <span className="visually-hidden"> waiting</span>
    </span>
  )
}

function Navigation() {
  const { pathname } = usePlace()
  const { count } = usePendingApprovals()
  const at = pathname === '/' ? '/home' : pathname
  return (
    <nav aria-label="Pages">
      <ul>
        {routes.map(({ path, title }) => (
          <li key={path}>
            <Link href={path} aria-current={at.startsWith(path) ? 'page' : undefined}>
              {title}
              {path === '/approvals' && count > 0 && <Waiting count={count} />}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}
