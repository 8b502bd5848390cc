// Every kind of page, at every width, in both colours: what axe says, what the console says, who is asked, and what is too wide.
//
//	node page_all.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, onPage, overflow, phone, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const a = world.answers
const pages = {
  overview: '/',
  conversations: '/ui/conversations',
  'conversations filtered': '/ui/conversations?q=marsh',
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
const missing = ['404', '400'] // the browser writes down what it did not find

const check = {}
await withBrowser(executablePath, async browser => {
  for (const [look, options] of Object.entries({
    'light at 1280': desktop, 'dark at 1280': { ...desktop, colorScheme: 'dark' },
    'light at 390': phone, 'dark at 390': { ...phone, colorScheme: 'dark' },
    'light at 320': { viewport: { width: 320, height: 512 } }, // 640 × 1024 at 200 %, and WCAG's reflow
    'light at 2000': { viewport: { width: 2000, height: 1100 } },
  })) {
    check[look] = () => onPage(browser, world, { ...options, may: missing }, async page => {
      const found = []
      for (const [name, url] of all) {
        await page.goto(url)
        await page.evaluate(() => document.fonts.ready)
        if (world.shots && !look.includes('2000')) {
          await page.screenshot({ path: `${world.shots}/${name} ${look}.png`.replaceAll(' ', '-'), fullPage: true })
        }
        for (const words of await overflow(page)) found.push(`${name}: too wide: ${words}`)
        if (!look.includes('320') && !look.includes('2000')) for (const words of await axe(page)) found.push(`${name}: ${words}`)
        assert.notEqual(await page.title(), 'harm')
      }
      assert.deepEqual(found, [])
    })
  }
  await scenarios(check)
})
