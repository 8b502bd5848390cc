// What an answer shows about itself: chips with their status, the trust line, the rail of sources and its sheet.
//
//	node page_trust.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, follow, onPage, overflow, phone, scenarios, settled, tablet, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const card = 'ibid-card:popover-open'
const bad = '.prose .chip.bad'

/** Opens the demo's answer that has a changed source. */
async function changed(page, query = '') {
  const found = await (await page.request.get(`${world.demo}/v1/answers?verification=failed`)).json()
  await page.goto(`${world.demo}/ui/answers/${found.answers[0].answer_id}${query}`)
}

// Where the sources have no room beside the text, a bar opens them.
const sheet = ({ viewport }) => async page => {
  await changed(page)
  const bar = page.locator('.to-sources')
  assert.match(await bar.innerText(), /3 sources\s+1 changed/)
  const box = await bar.boundingBox()
  assert.ok(Math.abs(box.y + box.height - viewport.height) < 2 || box.y < viewport.height, 'the bar is out of sight')
  await bar.tap()
  await page.waitForSelector('.sources:popover-open')
  await settled(page)
  assert.deepEqual(await overflow(page), [])
  assert.deepEqual(await axe(page), [])
  await page.locator('.sources-close').tap()
  await page.waitForSelector('.sources:not([popover])', { state: 'attached' })
  assert.ok(await page.locator('.sources').isHidden(), 'the list stands below the bar as well')
  await page.locator(bad).tap()
  await page.waitForSelector(card)
  assert.match(await page.locator(card).innerText(), /1986/)
}

await withBrowser(executablePath, browser => scenarios({
  'what is wrong is seen, heard and marked, in both colours': () => onPage(browser, world, desktop, async page => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await changed(page)
      assert.match(await page.locator(bad).ariaSnapshot(), /link "changed: 2 .* now 1986"/)
      assert.match(await page.locator('.prose mark.claim.bad').innerText(), /single pair in 1968/)
      assert.match(await page.locator('.notice.bad').innerText(), /The source now says 1986, the answer 1968\./)
      assert.match(await page.locator('.trust').innerText(), /1 changed[^]*1 sentence without a source[^]*signed[^]*checked/)
      assert.equal(await page.locator('.prose .no-source').isVisible(), false)
      assert.deepEqual(await axe(page), [])
    }
    await follow(page, page.getByRole('link', { name: /Saved copy of/ }))
    assert.equal(await page.locator('.saved-copy mark').first().innerText(), 'The colony began with a single pair in 1968, a year after the mill closed.')
    assert.deepEqual(await axe(page), [])
    assert.deepEqual(await overflow(page), [])
  }),
  'a part of the line shows its citations alone, also without scripts': async () => {
    const look = async page => {
      assert.deepEqual(await page.locator('.prose .chip.shown').count(), 1)
      assert.match(await page.locator('.prose mark.shown').innerText(), /1968/)
      assert.match(page.url(), /show=changed/)
      assert.equal(await page.locator('.trust-part[aria-current]').innerText(), '1 changed')
      const colour = n => page.locator(n).first().evaluate(e => getComputedStyle(e).color)
      assert.notEqual(await colour('.prose mark.shown'), await colour('.prose mark:not(.shown)'))
    }
    for (const javaScriptEnabled of [true, false]) {
      await onPage(browser, world, { ...desktop, javaScriptEnabled }, async page => {
        await changed(page)
        await follow(page, page.locator('.trust-part.bad'))
        await look(page)
        if (javaScriptEnabled) assert.deepEqual(await axe(page), [])
        await follow(page, page.getByRole('link', { name: 'Show all' }))
        assert.equal(await page.locator('.prose .shown').count(), 0)
        assert.doesNotMatch(page.url(), /show=/)
      })
    }
  },
  'the sources stay beside the text, and the one that is looked at is open': () => onPage(browser, world, desktop, async page => {
    await changed(page)
    const rail = page.locator('.sources'), place = async n => page.locator(n).boundingBox()
    assert.ok((await place('.sources')).x > (await place('.prose')).x + (await place('.prose')).width, 'they are not beside it')
    assert.equal(await rail.evaluate(e => getComputedStyle(e).position), 'sticky')
    assert.equal(await page.locator('.source.active').getAttribute('id'), 's-2') // the most serious one
    assert.deepEqual(await page.locator('.sources .use').evaluateAll(all => all.map(e => e.checkVisibility()).filter(Boolean).length), 1)
    assert.match(await page.locator('.source.active .diff').innerText(), /1968\s*1986/)
    await page.locator('.prose .chip').first().click()
    assert.equal(await page.locator('.source.active').getAttribute('id'), 's-1')
    assert.equal(await page.locator('.source.on').getAttribute('id'), 's-1')
    assert.equal(await page.locator(card).count(), 0, 'a card says the same beside it')
    assert.ok(await page.locator('#s-2 .diff').isVisible(), 'the change is folded')
    await page.keyboard.press('Escape')
    assert.equal(await page.locator('.source.on').count(), 0)
    await page.locator('#s-3').click({ position: { x: 10, y: 10 } })
    assert.equal(await page.locator('.source.active').getAttribute('id'), 's-3')
    await page.setViewportSize({ width: 1099, height: 800 })
    assert.ok(await page.locator('.to-sources').isVisible() && await rail.isHidden(), 'there is no room beside it')
    await page.setViewportSize({ width: 1100, height: 800 })
    assert.ok((await place('.sources')).y < (await place('.prose')).y)
    for (const width of [320, 800, 1100, 1440, 2000]) {
      await page.setViewportSize({ width, height: 800 })
      assert.deepEqual(await overflow(page), [], `${width} wide`)
    }
    await page.setViewportSize(desktop.viewport)
  }),
  'the card shows the difference first, and judges': () => onPage(browser, world, tablet, async page => {
    await changed(page)
    await page.locator(bad).click()
    await page.waitForSelector(card)
    assert.match(await page.locator(`${card} .diff`).innerText(), /pair in 1968\s*1986, a year after/)
    assert.match(await page.locator(`${card} a.passage`).getAttribute('href'), /#:~:text=.*1986/)
    assert.ok(await page.locator(`${card} a[href*="/copies/"]`).isVisible())
    await page.locator(`${card} a.judge`).click()
    await page.waitForSelector(`${card} form.judging button`)
    assert.equal(await page.locator('form.judging').count(), 1)
    assert.deepEqual(await axe(page), [])
  }),
  'copies carry the warning': () => onPage(browser, world, { ...desktop, fresh: true, permissions: ['clipboard-read', 'clipboard-write'] }, async page => {
    await changed(page)
    await page.locator('a.copy').click()
    await page.waitForFunction(() => document.querySelector('a.copy').textContent === 'Copied')
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /The lake and its birds http\S+ \(changed/)
    await page.locator('.cites summary').click()
    await page.locator('.cites a', { hasText: 'APA' }).click()
    await page.waitForFunction(() => document.querySelector('.cites a').textContent === 'APA: copied')
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /The lake and its birds/)
    const file = await page.request.get(new URL(await page.locator('.answer .menu a').first().getAttribute('href'), page.url()).href)
    assert.match(await file.text(), /The lake and its birds.*read .*WARNING: changed/)
  }),
  'on a phone the sources are a sheet': () => onPage(browser, world, phone, sheet(phone)),
  'on a tablet, too': () => onPage(browser, world, { ...tablet, hasTouch: true }, sheet(tablet)),
  'sources are read again when somebody wants it': () => onPage(browser, world, { ...desktop, javaScriptEnabled: false }, async page => {
    await changed(page)
    await follow(page, page.getByRole('button', { name: 'Check again' }))
    assert.match(page.url(), /\/ui\/answers\/ans_/)
    assert.match(await page.locator('.trust').innerText(), /checked just now/)
  }),
  'an answer without sources says what to do': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.base}/ui/answers/${world.answers.thanks}`)
    assert.match(await page.locator('.ask-for').innerText(), /"tools": \[\{"type":"web_search"\}\][^]*ibid attribute answer\.md/)
  }),
  'the search is a key away': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.base}/ui/answers/${world.answers.heron}`)
    const at = () => page.evaluate(() => document.activeElement.id)
    await page.keyboard.press('/')
    assert.equal(await at(), 'q')
    await page.keyboard.type('a/b')
    assert.equal(await page.inputValue('#q'), 'a/b')
    await page.locator('h1').click()
    await page.keyboard.press('Control+k')
    assert.equal(await at(), 'q')
  }),
}))
