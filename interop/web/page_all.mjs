// Every page at every width, and every kind of page in both colour schemes: axe's findings, console errors, requests to
// other hosts, and overflow.
//
//	node page_all.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, onPage, overflow, phone, refused, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const a = world.answers
const pages = {
  overview: '/',
  answers: '/ui/answers',
  conversation: '/ui/conversations/lake',
  'conversation in Arabic': '/ui/conversations/maktaba',
  'answer heron': `/ui/answers/${a.heron}`,
  'answer report': `/ui/answers/${a.report}`,
  'answer table': `/ui/answers/${a.cells}`,
  'answer ferry': `/ui/answers/${a.ferry}`,
  'answer maktaba': `/ui/answers/${a.maktaba}`,
  'answer sagi': `/ui/answers/${a.sagi}`,
  'answer buecherei': `/ui/answers/${a.buecherei}`,
  'answer rules': `/ui/answers/${a.rules}`,
  'answer thanks': `/ui/answers/${a.thanks}`,
  'answer fifty': `/ui/answers/${a.fifty}`,
  'answer hostile-gemini': `/ui/answers/${a['hostile-gemini']}`,
  'answer hostile-anthropic': `/ui/answers/${a['hostile-anthropic']}`,
  'conversation hostile': '/ui/conversations/hostile',
  'source of an answer': `/ui/answers/${a.heron}/sources/1`,
  'hostile source of an answer': `/ui/answers/${a['hostile-anthropic']}/sources/1`,
  ask: '/ui/ask',
  runs: '/ui/runs',
  search: '/ui/search?q=herons',
  'search, nothing found': '/ui/search?q=zzzzzz',
  sources: '/ui/sources',
  'a source': '/ui/sources?url=https%3A%2F%2Fbirds.example%2Ftonbo%2Fcensus',
  incidents: '/ui/incidents',
  verify: '/ui/verify',
  experiments: '/ui/experiments',
  feedback: '/ui/feedback',
  login: '/ui/login',
  'no such page': '/ui/nothing',
  'no such answer': '/ui/answers/ans_nothing',
}
const demo = {
  'demo overview': '/', 'demo run': '/ui/runs/demo', 'demo run, a sentence chosen': '/ui/runs/demo?sentence=1', 'demo runs': '/ui/runs',
  'demo conversation': '/ui/conversations/herons', 'demo incidents': '/ui/incidents', 'demo sources': '/ui/sources', 'demo search': '/ui/search',
  'demo verify': '/ui/verify',
}
const all = Object.entries(pages).map(([name, path]) => [name, world.base + path])
  .concat(world.demo ? Object.entries(demo).map(([name, path]) => [name, world.demo + path]) : [])
const may = [
  'status of 400', 'status of 404', // logged by the browser
  ...refused,
]
const shoot = async (page, name, look) => {
  if (world.shots) await page.screenshot({ path: `${world.shots}/${name} ${look}.png`.replaceAll(' ', '-'), fullPage: true })
}

/** Pages of the same kind as another in the list, where their colours and their layout on a phone are checked. */
const alike = new Set([
  'conversations filtered', 'conversation in Arabic', 'conversation hostile', 'answer ferry', 'answer sagi', 'answer buecherei', 'answer rules',
  'answer fifty', 'answer hostile-gemini', 'hostile source of an answer', 'search, nothing found', 'no such answer', 'demo overview',
  'demo sources', 'demo search', 'demo verify',
])

/** What is wrong with a page in a window, in both colour schemes and at other widths. */
async function laptop(page, name) {
  const found = (await overflow(page)).concat(await axe(page))
  await shoot(page, name, 'light at 1280')
  if (!alike.has(name) || world.shots) {
    await page.emulateMedia({ colorScheme: 'dark' })
    found.push(...await axe(page, ['color-contrast', 'link-in-text-block'])) // in dark mode, only colours
    await shoot(page, name, 'dark at 1280')
    await page.emulateMedia({ colorScheme: 'light' })
  }
  // 320 is WCAG's reflow: a window of 1280 at 400 %, or of 640 at 200 %.
  for (const [width, height] of [[320, 512], [640, 400], [2000, 1100]]) {
    await page.setViewportSize({ width, height })
    for (const words of await overflow(page)) found.push(`${width}: ${words}`)
    if (width === 320) await shoot(page, name, 'light at 320')
  }
  await page.setViewportSize(desktop.viewport)
  return found
}

/** What is wrong with a page on a phone. */
async function small(page, name) {
  const found = await overflow(page)
  if (!alike.has(name)) found.push(...await axe(page))
  await shoot(page, name, 'light at 390')
  return found
}

await withBrowser(executablePath, async browser => {
  /** Visits all pages, and fails with what f finds on them: each finding once, with the names of the pages. */
  const through = (options, f) => onPage(browser, world, { ...options, may }, async page => {
    const found = new Map()
    for (const [name, url] of all) {
      if (world.only && !name.includes(world.only)) continue
      await page.goto(url)
      assert.notEqual(await page.title(), 'harm')
      for (const words of await f(page, name)) found.set(words, [...found.get(words) ?? [], name])
    }
    assert.equal([...found].map(([words, names]) => `${words} on ${names.join(', ')}`).join('\n'), '')
  })
  await Promise.all([ // in parallel: neither measures time
    scenarios({ 'a window of a laptop, in both colours, and very narrow, zoomed and very wide': () => through(desktop, laptop) }),
    scenarios({ 'a phone': () => through(phone, small) }),
  ])
})
