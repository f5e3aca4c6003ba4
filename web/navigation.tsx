import {
  Activity,
  Bell,
  BookOpen,
  ChartColumn,
  CircleUserRound,
  Coins,
  Settings as Gear,
  Handshake,
  House,
  KeyRound,
  type LucideIcon,
  Menu as MenuIcon,
  MonitorCog,
  PackageX,
  ScrollText,
  Server,
  ShieldCheck,
  SlidersHorizontal,
  SquareTerminal,
  Sunrise,
  TriangleAlert,
  Users,
} from 'lucide-react'
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { formatOffset } from '../domain/format.ts'
import { usePendingApprovals } from './approvals/query.ts'
import { showKeys } from './keys.tsx'
import { Brand } from './page-frame.tsx'
import { unsubscribeHere } from './push.tsx'
import { Link, usePlace } from './router.tsx'
import { type PageRoute, type RouteGroup, routes } from './routes.tsx'
import { type BrowserSession, signOut } from './session.ts'
import { chooseTheme, getTheme, themes } from './theme.ts'
import { chooseZone, useZone, zones } from './time.ts'

const icons: Record<string, LucideIcon> = {
  '/home': House,
  '/incidents': TriangleAlert,
  '/approvals': ShieldCheck,
  '/resources': Server,
  '/devices': MonitorCog,
  '/alerts': Bell,
  '/knowledge': BookOpen,
  '/jobs': SquareTerminal,
  '/shift': Sunrise,
  '/trust': Handshake,
  '/reports': ChartColumn,
  '/usage': Coins,
  '/gaps': PackageX,
  '/health': Activity,
  '/config': SlidersHorizontal,
  '/audit': ScrollText,
  '/people': Users,
  '/tokens': KeyRound,
}

const groups: readonly RouteGroup[] = ['Work', 'Estate', 'Know', 'Insight']

function useIsAt(): (route: PageRoute) => boolean {
  const { pathname } = usePlace()
  const at = `/${pathname.split('/')[1] || 'home'}`
  return ({ path }) => at === path || routes.some((each) => each.path === at && each.within === path)
}

/** Shows the pages by purpose, those of the settings, and those of the person. */
export function Navigation({ session }: { session: BrowserSession }) {
  const isAt = useIsAt()
  return (
    <div className="side">
      <nav aria-label="Pages">
        <Brand />
        {groups.map((group) => (
          <section key={group}>
            <h2>{group}</h2>
            <ul>
              {routes
                .filter((route) => route.group === group && !route.within)
                .map((route) => (
                  <li key={route.path}>
                    <PageLink route={route} />
                  </li>
                ))}
            </ul>
          </section>
        ))}
        <div className="foot">
          <Menu icon={Gear} name="Settings" isAt={routes.filter(({ group }) => group === 'Settings').some(isAt)}>
            <SettingLinks />
          </Menu>
          <Menu icon={CircleUserRound} name={session.name}>
            <PersonMenu session={session} />
          </Menu>
        </div>
      </nav>
    </div>
  )
}

function PageLink({ route }: { route: PageRoute }) {
  const isAt = useIsAt()
  const { count } = usePendingApprovals()
  const { path, title } = route
  const Icon = icons[path] ?? House
  return (
    <Link href={path} title={title} aria-current={isAt(route) ? 'page' : undefined}>
      <Icon aria-hidden="true" />
      <span>{title}</span>
      {path === '/approvals' && count > 0 && <Waiting count={count} />}
    </Link>
  )
}

function Waiting({ count }: { count: number }) {
  return (
    <b className="count waits">
      {count}
      <span className="visually-hidden"> waiting</span>
    </b>
  )
}

/** Shows a button whose list opens beside it. Escape or a press elsewhere closes it. */
function Menu(props: { icon: LucideIcon; name: string; isAt?: boolean; children: ReactNode }) {
  const { icon: Icon, name, isAt = false, children } = props
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const { pathname } = usePlace()
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the list
  useEffect(() => list.current?.hidePopover(), [pathname])
  return (
    <>
      <button type="button" className={isAt ? 'menu here' : 'menu'} popoverTarget={id} title={name}>
        <Icon aria-hidden="true" />
        <span>{name}</span>
      </button>
      <div id={id} ref={list} popover="auto" className="popover">
        {children}
      </div>
    </>
  )
}

function SettingLinks() {
  const isAt = useIsAt()
  return (
    <ul>
      {routes
        .filter(({ group }) => group === 'Settings')
        .map((route) => (
          <li key={route.path}>
            <Link className="entry" href={route.path} aria-current={isAt(route) ? 'page' : undefined}>
              {route.title}
            </Link>
          </li>
        ))}
    </ul>
  )
}

/**
 * Signs out and ends the notifications of this browser, because another person may use this browser
 * next.
 */
async function leaveDevice(): Promise<void> {
  await unsubscribeHere().catch(() => {})
  await signOut()
}

function PersonMenu({ session }: { session: BrowserSession }) {
  return (
    <div className="stack tight">
      <p className="soft who">
        {session.name} · {session.role}
      </p>
      <ThemeSwitch />
      <ZoneSwitch />
      <button type="button" className="entry" onClick={showKeys}>
        Keys
      </button>
      <a className="entry" href="/docs">
        API
      </a>
      <button type="button" className="entry" onClick={() => void leaveDevice()}>
        Sign out
      </button>
    </div>
  )
}

function ThemeSwitch() {
  const [chosen, choose] = useState(getTheme)
  return (
    <fieldset className="switch">
      <legend>Colours</legend>
      {themes.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          onClick={() => {
            chooseTheme(each)
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
      <legend>Times</legend>
      {zones.map((each) => (
        <button
          type="button"
          key={each}
          aria-pressed={each === chosen}
          title={
            each === 'utc' ? 'Times in UTC' : `Times in your time zone, ${formatOffset(new Date().toISOString(), each)}`
          }
          onClick={() => chooseZone(each)}
        >
          {each === 'utc' ? 'UTC' : 'local'}
        </button>
      ))}
    </fieldset>
  )
}

/** Shows pages that share one place in the navigation as tabs. */
export function FamilyTabs() {
  const { pathname } = usePlace()
  const at = routes.find(({ path }) => path === pathname)
  if (!at) return null
  const parent = at.within ?? at.path
  const family = routes.filter(({ path, within }) => path === parent || within === parent)
  if (family.length < 2) return null
  return (
    <nav className="tabs" aria-label="Pages of this section">
      {family.map(({ path, title }) => (
        <Link key={path} href={path} aria-current={path === pathname ? 'page' : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  )
}

const thumbPaths = ['/home', '/incidents', '/approvals']

/**
 * Shows on a phone the three pages of the night within reach of a thumb, and the rest behind
 * *More*.
 */
export function BottomBar({ session }: { session: BrowserSession }) {
  const more = useRef<HTMLDialogElement>(null)
  const isAt = useIsAt()
  const leave = () => more.current?.close()
  return (
    <nav aria-label="Pages" className="bottom">
      {routes
        .filter(({ path }) => thumbPaths.includes(path))
        .map((route) => (
          <PageLink key={route.path} route={route} />
        ))}
      <button type="button" aria-haspopup="dialog" onClick={() => more.current?.showModal()}>
        <MenuIcon aria-hidden="true" />
        <span>More</span>
      </button>
      <dialog ref={more} className="more" aria-label="More pages and settings">
        <ul>
          {routes
            .filter(({ path }) => !thumbPaths.includes(path))
            .map((route) => (
              <li key={route.path}>
                <Link href={route.path} aria-current={isAt(route) ? 'page' : undefined} onClick={leave}>
                  {route.title}
                </Link>
              </li>
            ))}
        </ul>
        <PersonMenu session={session} />
        <button type="button" onClick={leave}>
          Close
        </button>
      </dialog>
    </nav>
  )
}
